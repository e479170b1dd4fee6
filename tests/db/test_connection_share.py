"""Shares of the connection pool: expensive work leaves connections to logins, and its callers take turns."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

import pytest
import trio

from sso.db import connection_share
from sso.db.connection_share import ConnectionShare, ConnectionShares
from sso.db.database import Database
from sso.db.errors import Unavailable
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from tests.kit.open_database import open_database

POOL = 8
ONE = Statement("SELECT 1")
Uses = Callable[[ConnectionShares, int], AbstractContextManager[None]]


def of_one_user(shares: ConnectionShares, _number: int) -> AbstractContextManager[None]:
    return shares.limit_management("user 1", is_root=False)


def of_many_users(shares: ConnectionShares, number: int) -> AbstractContextManager[None]:
    return shares.limit_management(f"user {number}", is_root=False)


def of_roots(shares: ConnectionShares, number: int) -> AbstractContextManager[None]:
    return shares.limit_management(f"user {number}", is_root=True)


def evaluations_of_one_project(shares: ConnectionShares, number: int) -> AbstractContextManager[None]:
    return _nested(of_many_users(shares, number), lambda: shares.limit_evaluation("project a"))


def evaluations_of_roots(shares: ConnectionShares, number: int) -> AbstractContextManager[None]:
    return _nested(of_roots(shares, number), lambda: shares.limit_evaluation("project a"))


def merges_of_many_users(shares: ConnectionShares, number: int) -> AbstractContextManager[None]:
    return shares.limit_merge(f"user {number}")


def _nested(
    outer: AbstractContextManager[None], inner: Callable[[], AbstractContextManager[None]]
) -> AbstractContextManager[None]:
    with ExitStack() as stack:
        stack.enter_context(outer)
        stack.enter_context(inner())
        return stack.pop_all()  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("uses", "connections"),
    [
        (of_one_user, 1),
        (of_many_users, 2),
        (of_roots, 2),
        (evaluations_of_one_project, 1),
        (evaluations_of_roots, 1),
        (merges_of_many_users, 1),
    ],
)
async def test_transactions_of_a_share_leave_connections_to_others(dsn: str, uses: Uses, connections: int) -> None:
    async with open_database(dsn, POOL) as database:
        busy: list[int] = []

        async def occupy(tx: Transaction) -> None:
            await tx.value(ONE)
            busy.append(database.busy_connections)

        async def call(number: int) -> None:
            with uses(database.shares, number):
                await database.transaction(occupy)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(call, number)
        assert len(busy) == 20
        assert max(busy) == connections


@pytest.mark.parametrize("pool_size", [5, POOL])
def test_evaluation_of_a_merge_keeps_its_connection(pool_size: int) -> None:
    """It must not wait for the document of an administrator."""
    shares = ConnectionShares(pool_size)

    def share_of_evaluation() -> ConnectionShare:
        with shares.limit_merge("user 1"), shares.limit_evaluation("project a"):
            use = connection_share.current_share.get()
            assert use is not None
            return use.share

    assert share_of_evaluation() is shares.merges
    with of_roots(shares, 1):
        assert share_of_evaluation() is shares.root


def test_shares_together_leave_a_connection_to_logins() -> None:
    for pool_size in range(5, 101):
        shares = ConnectionShares(pool_size)
        different = {shares.management, shares.evaluation, shares.root, shares.merges}
        assert sum(share.size for share in different) < pool_size


async def test_call_that_waits_for_too_long_is_refused_and_others_go_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database.shares.management._queue, "_max_wait_s", 0.01)
    begun = trio.Event()
    shares = database.shares

    async def occupy() -> None:
        with shares.limit_management("user 1", is_root=False):
            use = connection_share.current_share.get()
            assert use is not None
            async with use.share.turn(use.lanes):
                begun.set()
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(occupy)
        await begun.wait()
        with shares.limit_management("user 1", is_root=False), pytest.raises(Unavailable):
            await database.value(ONE)
        with shares.limit_management("user 1", is_root=True):
            assert await database.value(ONE) == 1
        assert await database.value(ONE) == 1  # a login
        nursery.cancel_scope.cancel()
    with shares.limit_management("user 1", is_root=False):
        assert await database.value(ONE) == 1


async def test_request_without_a_share_takes_any_connection(dsn: str) -> None:
    async with open_database(dsn, POOL) as database:
        busy: list[int] = []
        everyone = trio.Event()

        async def occupy(_tx: Transaction) -> None:
            busy.append(database.busy_connections)

        async def call() -> None:
            await everyone.wait()
            await database.transaction(occupy)

        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(call)
            everyone.set()
        assert max(busy) > database.shares.management.size
