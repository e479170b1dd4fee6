"""A contended transaction gives its connection back while another one holds a lock that it needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from sso.db.database import Database
from sso.db.errors import LockTimeout
from sso.db.statement import Statement
from sso.db.time_limits import TimeLimits
from sso.db.transaction import Transaction

LOCK = Statement("SELECT pg_advisory_xact_lock(1)")


@asynccontextmanager
async def holding_the_lock(dsn: str) -> AsyncIterator[None]:
    """Another process holds the lock within the block."""
    async with Database.open(dsn, 1, limits=TimeLimits.scaled(60)) as other, trio.open_nursery() as nursery:
        held = trio.Event()
        released = False

        async def hold(tx: Transaction) -> None:
            await tx.value(LOCK)
            held.set()
            while not released:
                await tx.value(Statement("SELECT pg_sleep(0.02)"))

        nursery.start_soon(other.transaction, hold)
        await held.wait()
        try:
            yield
        finally:
            released = True


async def test_transaction_is_run_again_until_the_lock_is_free(dsn: str) -> None:
    attempts = 0
    async with Database.open(dsn, 1, limits=TimeLimits.scaled(60)) as database:

        async def take(tx: Transaction) -> str:
            nonlocal attempts
            attempts += 1
            await tx.value(LOCK)
            return "done"

        results: list[str] = []

        async def run() -> None:
            results.append(await database.contended_transaction(60, take))

        async with trio.open_nursery() as nursery, holding_the_lock(dsn):
            nursery.start_soon(run)
            while attempts < 2:
                assert await database.value(Statement("SELECT 1")) == 1, "the only connection is free in between"
            assert results == []
        assert results == ["done"]


async def test_transaction_that_never_gets_the_lock_fails_at_its_deadline(dsn: str) -> None:
    async with Database.open(dsn, 1, limits=TimeLimits.scaled(1)) as database, holding_the_lock(dsn):
        with pytest.raises(LockTimeout):
            await database.contended_transaction(0, lambda tx: tx.value(LOCK))
        assert await database.value(Statement("SELECT 1")) == 1
