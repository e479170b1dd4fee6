"""Changing the master key: every sealed value of the database is decrypted, and encrypted with the new key.

Values are replaced in small transactions, so that rows are locked briefly and an interrupted change can be resumed.
A value is replaced only if it is still the one that was read (compare-and-set). A transaction that began before the new
key may commit values of the old key at its end. So a change is complete only after all of those.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

import trio
from msgspec import Struct, field

from sso.core.encryption import EncryptionError, Keyring
from sso.core.errors import OperatorError
from sso.db.database import Database
from sso.db.tables import sealed_columns
from sso.keys.open_transaction_store import open_transactions, still_open
from sso.keys.sealed_value_store import SealedValue, read_page, replace_values

STEP_VALUES = 100  # values that one statement replaces
RETRY_S = 0.2  # pause before other transactions are looked at again
MAX_STALL_S = 120.0  # without any progress
MAX_OPEN_S = 700.0  # longer than any write of the service or of a command takes

Progress = Callable[[int], None]  # called with the number of replaced values
Waiting = Callable[[int], None]  # called with the number of older transactions that are open


def _report(progress: Progress, before: int, done: int) -> None:
    progress(before + done)


class ResealIncomplete(EncryptionError):
    """Some values are still encrypted with an old key; the others have been replaced."""


class OlderTransactionOpen(OperatorError):
    """A transaction that may have encrypted something with an old master key does not end."""


class _Pass(Struct):
    """The result of one pass over all values."""

    done: int = 0
    locked: int = 0  # by other transactions, or changed since they were read
    damaged: list[str] = field(default_factory=list)


class Reseal:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def run(self, progress: Progress = lambda _: None, waiting: Waiting = lambda _: None) -> int:
        """Encrypts all values with the first key. Returns the number of values that had another key.

        Raises ResealIncomplete if some values cannot be decrypted, or if other transactions keep them locked, and
        OlderTransactionOpen if a transaction that may commit a value of another key does not end.
        """
        older = await open_transactions(self._database)
        total = await self._replace_all(progress)
        if older:
            await self._wait_until_ended(older, waiting)
            total += await self._replace_all(partial(_report, progress, total))
        return total

    async def wait_for_older_transactions(self, waiting: Waiting = lambda _: None) -> None:
        """Waits until all values that may have another key are visible. Raises OlderTransactionOpen."""
        await self._wait_until_ended(await open_transactions(self._database), waiting)

    async def _wait_until_ended(self, ids: Sequence[str], waiting: Waiting) -> None:
        deadline = trio.current_time() + MAX_OPEN_S
        while ids and (rows := await still_open(self._database, ids)):
            if trio.current_time() > deadline:
                raise OlderTransactionOpen(
                    f"the PostgreSQL process {rows[0]['pid']} keeps a transaction open, whose changes may need an old "
                    f"master key: wait until it ends, or end it with SELECT pg_terminate_backend({rows[0]['pid']}), "
                    "then run the command again"
                )
            waiting(len(rows))
            await trio.sleep(RETRY_S)

    async def _replace_all(self, progress: Progress) -> int:
        total = 0
        deadline = trio.current_time() + MAX_STALL_S
        while True:
            result = await self._pass(partial(_report, progress, total))
            total += result.done
            if not result.locked:
                break
            if result.done:
                deadline = trio.current_time() + MAX_STALL_S
            if trio.current_time() > deadline:
                raise ResealIncomplete(f"other transactions keep {result.locked} values locked: try again")
            await trio.sleep(RETRY_S)
        if result.damaged:
            raise ResealIncomplete(f"{len(result.damaged)} values cannot be decrypted, such as {result.damaged[0]}")
        return total

    async def count_outdated(self) -> int:
        """Returns the number of values that are not encrypted with the first key."""
        return len([value async for value in self._old_values()])

    async def _pass(self, progress: Progress) -> _Pass:
        result = _Pass()
        step: list[SealedValue] = []
        async for value in self._old_values():
            if step and (len(step) == STEP_VALUES or value.column is not step[0].column):
                await self._replace(step, result)
                progress(result.done)
                step = []
            step.append(value)
        if step:
            await self._replace(step, result)
            progress(result.done)
        return result

    async def _old_values(self) -> AsyncIterator[SealedValue]:
        """Yields the values that are not encrypted with the first key, ordered by table, column and key."""
        first = self._keyring.keys[0].id
        for table, column in sealed_columns():
            rows = await read_page(self._database, table, column, first)
            while rows:
                for row in rows:
                    if row["sealed"] is not None:
                        yield SealedValue(table, column, row["key"], row["sealed"])
                rows = await read_page(self._database, table, column, first, after=rows[-1]["key"])

    async def _replace(self, values: list[SealedValue], result: _Pass) -> None:
        new: list[tuple[SealedValue, str]] = []
        for value in values:
            try:
                new.append(
                    (value, self._keyring.encrypt(value.purpose, self._keyring.decrypt(value.purpose, value.sealed)))
                )
            except EncryptionError as error:
                result.damaged.append(f"{value.purpose} ({error})")
        if not new:
            return
        done = await self._database.transaction(replace_values, new)
        result.done += done
        result.locked += len(new) - done
