"""The state of the installation, read from the database: the database itself, the queue of mails, sizes of tables."""

from typing import Any

from sso.db.database import Database
from sso.db.statement import Statement

MAX_COUNTED = 10_000  # a larger table is estimated

_DATABASE = Statement(
    """SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size,
        current_setting('max_connections')::int AS max_connections,
        (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())::int AS connections,
        (SELECT version_num FROM alembic_version) AS schema"""
)
_MAIL = Statement(
    """SELECT count(*) AS waiting, count(*) FILTER (WHERE tries > 0) AS tried,
        coalesce(CAST(extract(epoch FROM now() - min(created)) AS int), 0) AS oldest_s
    FROM (SELECT created, tries FROM outbox WHERE recipient <> '' LIMIT 10000) waiting"""
)
_COUNTED = ("users", "applications", "projects", "oauth_clients")
_TOTAL = f"""SELECT '{{table}}' AS name, CASE WHEN counted.rows <= {MAX_COUNTED} THEN counted.rows ELSE greatest(
        counted.rows, (SELECT reltuples FROM pg_class WHERE oid = CAST('{{table}}' AS regclass))::bigint) END AS rows
    FROM (SELECT count(*) AS rows FROM (SELECT FROM {{table}} LIMIT {MAX_COUNTED + 1}) t) counted"""
_TOTALS = Statement(" UNION ALL ".join(_TOTAL.format(table=table) for table in _COUNTED))


async def read_database_state(database: Database) -> dict[str, Any]:
    """Returns versions, the size, and how many connections there are and may be."""
    row = await database.row(_DATABASE)
    assert row is not None
    return dict(row)


async def read_mail_queue(database: Database) -> dict[str, Any]:
    row = await database.row(_MAIL)
    assert row is not None
    return dict(row)


async def read_totals(database: Database) -> dict[str, int]:
    """Returns the numbers of users, applications, projects and clients."""
    return {row["name"]: row["rows"] for row in await database.rows(_TOTALS)}
