"""Empties a database after a test, so that another test can use it: much faster than to drop it and create another.

Only data may have changed: a database with another schema, or which has become large, must be dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import asyncpg

GROWTH = 16 * 2**20  # bytes
_END_OTHER_CONNECTIONS = """
    SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
# Everything that a statement can change in the schema and the settings of a database, as one text.
_SCHEMA = """
    WITH public AS (SELECT 'public'::regnamespace AS oid)
    SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
        SELECT format('schema %s %s', nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
        UNION ALL
        SELECT format('relation %s %s %s %s %s', c.oid, relname, relkind, relacl, reloptions)
        FROM pg_class c, public WHERE relnamespace = public.oid
        UNION ALL
        SELECT format('column %s %s %s %s %s %s', attrelid, attnum, attname, format_type(atttypid, atttypmod),
                      attnotnull, pg_get_expr(adbin, adrelid))
        FROM public, pg_class c JOIN pg_attribute a ON attrelid = c.oid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = public.oid AND attnum > 0
        UNION ALL
        SELECT format('constraint %s %s', conrelid, pg_get_constraintdef(c.oid))
        FROM pg_constraint c, public WHERE connamespace = public.oid
        UNION ALL
        SELECT format('index %s %s', indexrelid, pg_get_indexdef(indexrelid))
        FROM public, pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = public.oid
        UNION ALL
        SELECT format('trigger %s %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL
        SELECT format('function %s %s', proname, prosrc) FROM pg_proc, public WHERE pronamespace = public.oid
        UNION ALL
        SELECT format('type %s', typname) FROM pg_type, public WHERE typnamespace = public.oid
        UNION ALL
        SELECT format('setting %s', setconfig) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
        WHERE datname = current_database()
    ) AS lines (line)
"""
# Changes with every change of the schema. It is faster to read, but also changes if a change is undone.
# The age of a row is counted from now, like that of the oldest transaction; ages need no conversion to text and back.
_LAST_SCHEMA_CHANGE = f"""SELECT string_agg(format('%s %s', rows, newest), ',') FROM ({
    " UNION ALL ".join(
        f"SELECT count(*), age('3'::xid) - min(age(xmin)) FROM {catalogue}"
        for catalogue in ("pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_namespace",
                          "pg_proc", "pg_trigger", "pg_type", "pg_db_role_setting")
    )
}) AS catalogues (rows, newest)"""  # fmt: skip
_TABLES_WITH_ROWS = """
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
"""
_SEQUENCES = "SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
_SIZE = "SELECT pg_database_size(current_database())"


@dataclass(frozen=True)
class NewDatabase:
    """What a database contains when it is new."""

    schema: str
    last_schema_change: str
    size: int
    refilling: str  # statements that create the rows of the migrations, and reset the sequences

    @classmethod
    async def read(cls, connection: asyncpg.Connection) -> Self:
        refilling = await rows_as_statements(connection, await tables_with_rows(connection))
        for name in [row[0] for row in await connection.fetch(_SEQUENCES)]:
            setting = f"""format('SELECT setval(%L, %s, %L)', '"{name}"', last_value, is_called)"""
            refilling.append(await connection.fetchval(f'SELECT {setting} FROM "{name}"'))
        return cls(
            await connection.fetchval(_SCHEMA),
            await connection.fetchval(_LAST_SCHEMA_CHANGE),
            await connection.fetchval(_SIZE),
            "; ".join(refilling),
        )

    async def restore(self, connection: asyncpg.Connection) -> bool:
        """Ends all other connections and deletes what tests have written. Returns False if that is not enough."""
        await connection.execute(_END_OTHER_CONNECTIONS)
        if not await self.differs_in_rows(connection):
            return False
        await replace_rows(connection, await tables_with_rows(connection), self.refilling)
        return True

    async def differs_in_rows(self, connection: asyncpg.Connection) -> bool:
        """Returns False if a database has become large or has another schema."""
        if await connection.fetchval(_SIZE) > self.size + GROWTH:
            return False
        if await connection.fetchval(_LAST_SCHEMA_CHANGE) == self.last_schema_change:
            return True
        return bool(await connection.fetchval(_SCHEMA) == self.schema)


async def tables_with_rows(connection: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await connection.fetch(_TABLES_WITH_ROWS)]


async def rows_as_statements(connection: asyncpg.Connection, tables: Iterable[str]) -> list[str]:
    """Returns statements that create the rows of these tables."""
    statements: list[str] = []
    for table in tables:
        columns = f"""format('INSERT INTO "{table}" SELECT (%L::"{table}").*', t::text)"""
        statements += [row[0] for row in await connection.fetch(f'SELECT {columns} FROM "{table}" t')]
    return statements


async def replace_rows(connection: asyncpg.Connection, tables: Iterable[str], refilling: str) -> None:
    """Deletes the rows of these tables and creates others."""
    deleting = "".join(f'DELETE FROM "{table}"; ' for table in tables)
    # Without the checks of foreign keys, whose order would matter.
    await connection.execute(f"SET LOCAL session_replication_role = replica; {deleting}{refilling}")
