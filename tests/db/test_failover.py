"""The primary dies, falls silent or becomes read-only, and a standby is promoted: with real PostgreSQL servers."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.to_thread import run_sync as in_thread

from sso.db.database import Database
from sso.db.errors import Unavailable
from sso.db.listener import Listener
from sso.db.standalone import fetch_value, host_states
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from tests.kit.conditions import LIMIT_S
from tests.kit.postgres import execute, fetch
from tests.kit.replication import Node, dsn_of, replication
from tests.kit.server import until

PORT = Statement("SHOW port")
INSERT = Statement("INSERT INTO written (number) VALUES (:number)")
COUNT = "SELECT count(*) FROM written"
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sso'"


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    """A primary and a standby with a table."""
    with replication() as nodes:
        execute(nodes[0].dsn, "CREATE TABLE written (number int)")
        nodes[0].wait_for_standby(nodes[1])
        yield nodes


@asynccontextmanager
async def opened(*nodes: Node) -> AsyncIterator[Database]:
    async with Database.open(dsn_of(*nodes), 4) as database:
        await database.open_connections()
        yield database


async def until_written(database: Database) -> int:
    """Returns the number of failed calls before one succeeded."""
    failures = 0
    with trio.fail_after(LIMIT_S):
        while True:
            try:
                await database.value(INSERT, number=failures)
            except Unavailable:
                failures += 1
                await trio.sleep(0.02)
            else:
                return failures


async def test_silent_standby_is_not_noticed_and_promoted_when_the_primary_is_killed(nodes: list[Node]) -> None:
    primary, standby = nodes
    async with opened(standby, primary) as database, listening(database) as received:
        with standby.silent():
            for number in range(5):
                await database.value(INSERT, number=number)
                database._pool.drop_idle()  # each connection begins with a search
            assert await in_thread(fetch_value, dsn_of(standby, primary), COUNT) == 5
            assert await in_thread(states, standby, primary) == ["does not answer", "primary"]
        assert await in_thread(states, standby, primary) == ["standby", "primary"]
        await in_thread(primary.wait_for_standby, standby)
        assert await database.value(PORT) == str(primary.port)
        await until_no_connections(standby)
        await in_thread(primary.kill)
        with pytest.raises(Unavailable):
            await database.value(INSERT, number=1)
        await in_thread(standby.promote)
        await until_written(database)
        assert await database.value(PORT) == str(standby.port)
        await until_notified(database, received)
    assert await in_thread(fetch, standby.dsn, COUNT) == 6


async def test_silent_primary_is_left_when_the_standby_is_promoted(nodes: list[Node]) -> None:
    primary, standby = nodes
    async with opened(primary, standby) as database, listening(database) as received:
        with primary.silent():
            await in_thread(standby.promote)
            began = trio.current_time()
            await until_written(database)
            print(f"written after {trio.current_time() - began:.2f} s")
            await until_notified(database, received)
        # It runs again and still accepts writes, but nothing is connected to it.
        await until_no_connections(primary)
        await database.open_connections()
        assert await in_thread(fetch, primary.dsn, CONNECTIONS) == 0
        assert await in_thread(fetch, standby.dsn, CONNECTIONS) > 1
    assert await in_thread(fetch, primary.dsn, COUNT) == 0


async def test_what_a_read_only_server_refuses_runs_on_the_primary(nodes: list[Node]) -> None:
    former, standby = nodes
    ports = []

    async def insert(tx: Transaction) -> None:
        ports.append(await tx.value(PORT))
        await tx.value(INSERT, number=1)

    async with opened(former, standby) as database, opened(former, standby) as another:
        await in_thread(standby.promote)
        await in_thread(make_read_only, former)
        await another.transaction(insert)  # no error: the first attempt has written nothing
        await database.value(INSERT, number=1)
        assert await database.value(PORT) == str(standby.port)
        await until_no_connections(former)
    assert ports == [str(former.port), str(standby.port)]
    assert await in_thread(fetch, standby.dsn, COUNT) == 2


def states(*nodes: Node) -> list[str]:
    return list(host_states(dsn_of(*nodes)).values())


# Waiting


@asynccontextmanager
async def listening(database: Database) -> AsyncIterator[list[str]]:
    """Listens again whenever the connection is lost. Yields the received topics."""
    received: list[str] = []
    connected = trio.Event()

    async def listen() -> None:
        while True:
            try:
                listener = Listener(database.connector, ["sso"], received.append)
                await database.run_on_asyncio(listener.run(connected.set))
            except Unavailable:
                await trio.sleep(0.05)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        with trio.fail_after(LIMIT_S):
            await connected.wait()
        yield received
        nursery.cancel_scope.cancel()


async def until_notified(database: Database, received: list[str]) -> None:
    """Notifies until the listener, which may still be connecting, has received it."""
    with trio.fail_after(LIMIT_S):
        while not received:
            await database.value(Statement("SELECT pg_notify('sso', 'topic')"))
            await trio.sleep(0.02)


async def until_no_connections(node: Node) -> None:
    assert await in_thread(until, lambda: fetch(node.dsn, CONNECTIONS) == 0, LIMIT_S)


def make_read_only(node: Node) -> None:
    execute(node.dsn, "ALTER SYSTEM SET default_transaction_read_only = on")
    execute(node.dsn, "SELECT pg_reload_conf()")
    assert until(lambda: fetch(node.dsn, "SHOW default_transaction_read_only") == "on", LIMIT_S)
