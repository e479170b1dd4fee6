"""The encrypted values in the database: all columns that are marked as sealed."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Column, Table

from sso.core.encryption import column_purpose
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

PAGE_ROWS = 1000  # rows that one statement reads


class SealedValue(Struct, frozen=True):
    """A sealed value and its location."""

    table: Table
    column: Column[Any]
    key: Any
    sealed: str

    @property
    def purpose(self) -> str:
        return column_purpose(f"{self.table.name}.{self.column.name}", self.key)


async def read_page(
    runner: Runner, table: Table, column: Column[Any], first_key: str, after: Any = None
) -> Sequence[Row]:
    """Returns the next rows in key order: their keys, and their values if these do not have the first master key."""
    statement = _page_statement(table, column, has_previous=after is not None)
    return await runner.rows(statement, first=first_key, **({} if after is None else {"after": after}))


async def replace_values(tx: Transaction, values: Sequence[tuple[SealedValue, str]]) -> int:
    """Replaces values of one column that are unlocked and still as they were read. Returns their number."""
    statement = _replace_statement(values[0][0].table, values[0][0].column)
    count: int = await tx.value(
        statement,
        keys=[value.key for value, _ in values],
        old=[value.sealed for value, _ in values],
        new=[sealed for _, sealed in values],
    )
    return count


def _page_statement(table: Table, column: Column[Any], *, has_previous: bool = False) -> Statement:
    """Returns a statement for the next rows in key order, including rows without a value: each page costs the same."""
    key = _key_column(table)
    return Statement(
        f"""WITH page AS (
            SELECT {key.name} AS key, {column.name} AS sealed FROM {table.name}
            {f"WHERE {key.name} > CAST(:after AS {key.type})" if has_previous else ""}
            ORDER BY {key.name} LIMIT {PAGE_ROWS}
        )
        SELECT key, CASE WHEN split_part(sealed, '.', 2) <> :first THEN sealed END AS sealed
        FROM page ORDER BY key"""
    )


def _replace_statement(table: Table, column: Column[Any]) -> Statement:
    """Returns a statement that replaces values and skips locked rows, so that no transaction waits for another."""
    key = _key_column(table)
    return Statement(
        f"""WITH item AS (
            SELECT * FROM unnest(CAST(:keys AS {key.type}[]), CAST(:old AS text[]), CAST(:new AS text[]))
                AS item (key, old, new)
        ), unlocked AS (
            -- The rows that no other transaction has locked, in key order to avoid deadlocks.
            SELECT t.{key.name} AS key, t.{column.name} AS sealed FROM {table.name} t
            WHERE t.{key.name} = ANY (ARRAY(SELECT key FROM item)) ORDER BY 1 FOR NO KEY UPDATE SKIP LOCKED
        ), replaced AS (
            UPDATE {table.name} t SET {column.name} = item.new FROM item JOIN unlocked ON unlocked.key = item.key
            WHERE t.{key.name} = item.key AND unlocked.sealed = item.old RETURNING 1
        )
        SELECT count(*) FROM replaced"""
    )


def _key_column(table: Table) -> Column[Any]:
    (key,) = table.primary_key.columns
    return key
