"""Connections to one of several hosts, when none of them changes its role."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
import trio

from sso.core.database_url import DatabaseHost, database_hosts
from sso.db import race
from sso.db.database import Database
from sso.db.errors import Unavailable, Unreachable
from sso.db.listener import Listener
from sso.db.race import find_primary
from sso.db.standalone import CONNECT_S, fetch_value
from sso.db.statement import Statement
from tests.kit.conditions import until_true
from tests.kit.ports import free_port
from tests.kit.silent_host import SilentHost, silent_host

NAME = Statement("SELECT current_database()")


@pytest.fixture(autouse=True)
def _long_head_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, the known primary might need longer than usual."""
    monkeypatch.setattr("sso.db.race.HEAD_START_S", 20)
    monkeypatch.setattr("sso.db.connector.HEAD_START_S", 20)


@pytest.fixture
def silent() -> Iterator[SilentHost]:
    with silent_host() as host:
        yield host


@pytest.fixture
def hosts_dsn(dsn: str, silent: SilentHost) -> str:
    """A URL with a silent host before the real one."""
    return behind(silent.port, dsn)


@pytest.fixture
async def hosts_database(hosts_dsn: str) -> AsyncIterator[Database]:
    async with Database.open(hosts_dsn, 6) as database:
        yield database


def behind(port: int, dsn: str) -> str:
    """Adds a TCP port on loopback to the URL, before the Unix socket of the test server."""
    assert "?host=%2F" in dsn
    return dsn.replace("?host=", "?host=127.0.0.1,").replace("&port=", f"&port={port},")


async def test_silent_host_does_not_delay_connections(hosts_database: Database, silent: SilentHost) -> None:
    assert await hosts_database.value(NAME)  # within two seconds
    assert silent.connections() == 1


async def test_concurrent_connections_share_one_search(hosts_database: Database, silent: SilentHost) -> None:
    await hosts_database.open_connections()
    assert len(hosts_database._pool._idle) == 6
    assert silent.connections() == 1
    for connection in hosts_database._pool._idle:
        connection.terminate()
    await hosts_database.open_connections()  # directly to the primary that is known
    assert silent.connections() == 0


async def test_search_begins_with_the_last_primary(hosts_database: Database, silent: SilentHost) -> None:
    await hosts_database.ping()
    assert silent.connections() == 1
    hosts_database._pool.drop_idle()
    await hosts_database.ping()
    assert silent.connections() == 0


async def test_listener_ignores_a_silent_host(hosts_database: Database) -> None:
    received: list[str] = []
    listening = trio.Event()
    async with trio.open_nursery() as nursery:
        listener = Listener(hosts_database.connector, ["sso"], received.append)
        nursery.start_soon(hosts_database.run_on_asyncio, listener.run(listening.set))
        with trio.fail_after(60):
            await listening.wait()
        await hosts_database.value(Statement("SELECT pg_notify('sso', 'topic')"))
        await until_true(lambda: received == ["topic"])
        nursery.cancel_scope.cancel()


def test_standalone_connection_ignores_a_silent_host(hosts_dsn: str, silent: SilentHost) -> None:
    began = time.monotonic()
    assert fetch_value(hosts_dsn, "SELECT 7") == 7
    assert time.monotonic() - began < CONNECT_S
    assert silent.connections() == 1
    assert fetch_value(hosts_dsn, "SELECT 8") == 8
    assert silent.connections() == 0  # the second connection begins with the known primary


async def test_unusable_hosts_are_named_with_their_reasons(dsn: str) -> None:
    first, second = free_port(), free_port()
    url = f"postgresql://sso:hunter2@127.0.0.1:{first},127.0.0.1:{second}/sso"
    expected = f"127.0.0.1:{first}: refuses connections; 127.0.0.1:{second}: refuses connections"
    async with Database.open(url, 2) as database:
        with pytest.raises(Unreachable) as caught:
            await database.ping()
    assert str(caught.value) == expected


def test_standalone_error_names_the_host_but_not_the_password(dsn: str) -> None:
    url = f"postgresql://sso:hunter2@127.0.0.1:{free_port()},127.0.0.1:{free_port()}/sso"
    with pytest.raises(Unreachable) as caught:
        fetch_value(url, "SELECT 1")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(Unreachable, match=r"^/.*: does not have the database$"):
        fetch_value(dsn.replace("/t", "/missing", 1), "SELECT 1")


def test_invalid_parameter_is_not_a_failure_of_the_hosts(hosts_dsn: str) -> None:
    with pytest.raises(Unavailable, match=r"^the database URL is not valid, or its sslmode needs sslrootcert$"):
        fetch_value(f"{hosts_dsn}&sslmode=hunter2", "SELECT 1")


# The race


class Opened:
    def __init__(self) -> None:
        self.terminated = False

    def terminate(self) -> None:
        self.terminated = True


HOSTS = database_hosts("postgresql://a,b,c/db")


def test_host_that_answers_first_wins_and_the_others_are_closed() -> None:
    connections = {host: Opened() for host in HOSTS}
    all_started = asyncio.Event()

    async def open_host(host: DatabaseHost) -> Any:
        all_started.set() if host == HOSTS[2] else await all_started.wait()
        return connections[host]

    assert asyncio.run(find_primary(HOSTS, open_host, None, 20)) == (HOSTS[2], connections[HOSTS[2]])
    assert [connection.terminated for connection in connections.values()] == [True, True, False]


def test_other_hosts_start_at_once_if_the_last_primary_refuses() -> None:
    async def open_host(host: DatabaseHost) -> Any:
        if host == HOSTS[1]:
            raise ConnectionRefusedError
        return Opened()

    assert asyncio.run(find_primary(HOSTS, open_host, HOSTS[1], 5))[0] in (HOSTS[0], HOSTS[2])


def test_standby_is_tried_again_while_another_host_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "HEAD_START_S", 0.01)
    monkeypatch.setattr(race, "RETRY_S", 0.01)
    attempts = dict.fromkeys(HOSTS, 0)

    async def open_host(host: DatabaseHost) -> Any:
        attempts[host] += 1
        if host == HOSTS[0]:
            await asyncio.Event().wait()
        if host == HOSTS[1] or attempts[host] < 4:
            raise asyncpg.TargetServerAttributeNotMatched
        return Opened()

    assert asyncio.run(find_primary(HOSTS, open_host, HOSTS[0], 20))[0] == HOSTS[2]


def test_race_ends_with_the_reasons_of_all_hosts() -> None:
    async def open_host(host: DatabaseHost) -> Any:
        if host == HOSTS[0]:
            await asyncio.Event().wait()
        raise asyncpg.TargetServerAttributeNotMatched if host == HOSTS[1] else ConnectionRefusedError

    with pytest.raises(Unreachable) as caught:
        asyncio.run(find_primary(HOSTS, open_host, None, 0.1))
    assert str(caught.value) == "a: does not answer; b: is a standby or read-only; c: refuses connections"
