"""Changing the master key: every sealed value of the database is opened and sealed anew.

In small steps, each committed by itself: no row is locked for longer than a step, and an interrupted change goes on
where it was. A value is replaced only if it is still the one that was opened (compare-and-set).
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio
from sqlalchemy import Column, Table

from sso.core.encryption import Keyring, SealError, place
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.tables import metadata
from sso.db.transaction import Transaction

PAGE = 1000  # rows that are looked at in a statement
STEP = 100  # values that are replaced in a statement
PAUSE_S = 0.2  # before values that other transactions held are tried again
PATIENCE_S = 120.0  # without any progress

Progress = Callable[[int], None]  # is told how many values are done


def _report(progress: Progress, before: int, done: int) -> None:
    progress(before + done)


class ResealIncomplete(SealError):
    """Some values are still sealed with an old key; the rest is done."""


@dataclass(frozen=True)
class SealedValue:
    """A sealed value and where it is."""

    table: Table
    column: Column[Any]
    key: Any
    sealed: str

    @property
    def purpose(self) -> str:
        return place(f"{self.table.name}.{self.column.name}", self.key)


@dataclass
class _Pass:
    """One walk through all values."""

    done: int = 0
    held: int = 0  # by other transactions, or changed since they were read
    damaged: list[str] = field(default_factory=list)


class Reseal:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def run(self, progress: Progress = lambda _: None) -> int:
        """Seal all values with the first key; returns the number of values that were sealed with another one.

        Unfinished if some of them do not open, or other transactions hold them all the time.
        """
        total = 0
        deadline = trio.current_time() + PATIENCE_S
        while True:
            walk = await self._walk(partial(_report, progress, total))
            total += walk.done
            if not walk.held:
                break
            if walk.done:
                deadline = trio.current_time() + PATIENCE_S
            if trio.current_time() > deadline:
                raise ResealIncomplete(f"{walk.held} values are in use all the time: try again")
            await trio.sleep(PAUSE_S)
        if walk.damaged:
            raise ResealIncomplete(f"{len(walk.damaged)} values do not open, such as {walk.damaged[0]}")
        return total

    async def count_outdated(self) -> int:
        """How many values need a key other than the first."""
        return len([value async for value in self._old_values()])

    async def _walk(self, progress: Progress) -> _Pass:
        walk = _Pass()
        step: list[SealedValue] = []
        async for value in self._old_values():
            if step and (len(step) == STEP or value.column is not step[0].column):
                await self._replace(step, walk)
                progress(walk.done)
                step = []
            step.append(value)
        if step:
            await self._replace(step, walk)
            progress(walk.done)
        return walk

    async def _old_values(self) -> AsyncIterator[SealedValue]:
        """The values that are not sealed with the first key, in the order of their tables, columns and keys."""
        first = self._keyring.keys[0].id
        for table, column in sealed_columns():
            rows = await self._database.rows(_page(table, column), first=first)
            while rows:
                for row in rows:
                    if row["sealed"] is not None:
                        yield SealedValue(table, column, row["key"], row["sealed"])
                rows = await self._database.rows(_page(table, column, further=True), first=first, after=rows[-1]["key"])

    async def _replace(self, values: list[SealedValue], walk: _Pass) -> None:
        new: list[tuple[SealedValue, str]] = []
        for value in values:
            try:
                new.append((value, self._keyring.seal(value.purpose, self._keyring.open(value.purpose, value.sealed))))
            except SealError as error:
                walk.damaged.append(f"{value.purpose} ({error})")
        if not new:
            return
        statement = _replacement(values[0].table, values[0].column)

        async def work(tx: Transaction) -> int:
            count: int = await tx.value(
                statement,
                keys=[value.key for value, _ in new],
                old=[value.sealed for value, _ in new],
                new=[sealed for _, sealed in new],
            )
            return count

        done = await self._database.transaction(work)
        walk.done += done
        walk.held += len(new) - done


def sealed_columns() -> list[tuple[Table, Column[Any]]]:
    return [(table, column) for table in metadata.sorted_tables for column in table.columns if "sealed" in column.info]


def _page(table: Table, column: Column[Any], *, further: bool = False) -> Statement:
    """The next rows by their key, whether they hold a value or not: a page costs the same in every table."""
    key = _key_column(table)
    return Statement(
        f"""WITH page AS (
            SELECT {key.name} AS key, {column.name} AS sealed FROM {table.name}
            {f"WHERE {key.name} > CAST(:after AS {key.type})" if further else ""} ORDER BY {key.name} LIMIT {PAGE}
        )
        SELECT key, CASE WHEN split_part(sealed, '.', 2) <> :first THEN sealed END AS sealed
        FROM page ORDER BY key"""  # noqa: S608 - the names are ours
    )


def _replacement(table: Table, column: Column[Any]) -> Statement:
    """Rows that another transaction holds are passed over, so that neither waits for the other."""
    key = _key_column(table)
    return Statement(
        f"""WITH item AS (
            SELECT * FROM unnest(CAST(:keys AS {key.type}[]), CAST(:old AS text[]), CAST(:new AS text[]))
                AS item (key, old, new)
        ), held AS (
            SELECT t.{key.name} AS key, t.{column.name} AS sealed FROM {table.name} t
            WHERE t.{key.name} = ANY (ARRAY(SELECT key FROM item)) ORDER BY 1 FOR NO KEY UPDATE SKIP LOCKED
        ), replaced AS (
            UPDATE {table.name} t SET {column.name} = item.new FROM item JOIN held ON held.key = item.key
            WHERE t.{key.name} = item.key AND held.sealed = item.old RETURNING 1
        )
        SELECT count(*) FROM replaced"""  # noqa: S608 - the names are ours
    )


def _key_column(table: Table) -> Column[Any]:
    (key,) = table.primary_key.columns
    return key
