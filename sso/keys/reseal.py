"""Changing the master key: every sealed value of the database is opened and sealed anew."""

from typing import Any

from sqlalchemy import Column, Table, bindparam, select, update

from sso.core.sealed import Keyring, key_id_of, place
from sso.db.bridge import Database, Transaction
from sso.db.statement import Statement
from sso.db.tables import metadata

RESEAL_S = 600.0


class Reseal:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def run(self) -> int:
        """All values, or on a failure none, are sealed with the first key. How many there were."""

        async def work(tx: Transaction) -> int:
            count = 0
            for table, column in sealed_columns():
                for row in await tx.rows(_sealed_rows(table, column)):
                    await self._reseal(tx, table, column, row)
                    count += 1
            return count

        return await self._database.transaction(work, run_s=RESEAL_S)

    async def sealed_with_old(self) -> int:
        """How many values need a key other than the first."""
        first = self._keyring.keys[0].id

        async def work(tx: Transaction) -> int:
            count = 0
            for table, column in sealed_columns():
                rows = await tx.rows(_sealed_rows(table, column))
                count += sum(key_id_of(row[column.name]) != first for row in rows)
            return count

        return await self._database.transaction(work, run_s=RESEAL_S)

    async def _reseal(self, tx: Transaction, table: Table, column: Column[Any], row: Any) -> None:
        key = _key_column(table)
        purpose = place(f"{table.name}.{column.name}", row[key.name])
        sealed = self._keyring.seal(purpose, self._keyring.open(purpose, row[column.name]))
        change = update(table).where(key == bindparam("key")).values({column.name: bindparam("sealed")})
        await tx.value(Statement(change), key=row[key.name], sealed=sealed)


def sealed_columns() -> list[tuple[Table, Column[Any]]]:
    return [(table, column) for table in metadata.sorted_tables for column in table.columns if "sealed" in column.info]


def _sealed_rows(table: Table, column: Column[Any]) -> Statement:
    return Statement(select(_key_column(table), column).where(column.is_not(None)).with_for_update())


def _key_column(table: Table) -> Column[Any]:
    (key,) = table.primary_key.columns
    return key
