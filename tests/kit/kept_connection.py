"""Connections that stay open from one query of a test to the next: opening one takes ten times as long."""

import asyncio
import atexit
import functools
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any, TypeVar

import asyncpg

# What the driver raises if PostgreSQL has closed the connection in the meantime.
_LOST = (asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError,
         asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)  # fmt: skip

_MAX_DATABASES = 6
T = TypeVar("T")


class KeptConnection:
    """The connection to the database that was asked last. One thread may use it."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self._dsn = ""
        self._connection: Any = None

    def fetch(self, dsn: str, sql: str, *values: Any) -> list[Any]:
        return self._runner.run(self._fetch(dsn, sql, *values))

    def close(self) -> None:
        self._terminate()
        self._runner.close()

    async def _fetch(self, dsn: str, sql: str, *values: Any) -> list[Any]:
        if self._connection and self._dsn == dsn:
            # Nothing is executed on a connection that PostgreSQL has closed, so the query may be sent again.
            with suppress(*_LOST):
                return list(await self._connection.fetch(sql, *values))
        self._terminate()
        self._connection = await asyncpg.connect(dsn, statement_cache_size=0)  # tests change tables
        self._dsn = dsn
        return list(await self._connection.fetch(sql, *values))

    def _terminate(self) -> None:
        if self._connection:
            self._connection.terminate()
        self._connection = None


class ConnectionPerDatabase:
    """A connection to each of the databases that were used last. One thread may use them."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self._connections: dict[str, Any] = {}  # the one that was used last is the last

    def run(self, dsn: str, function: Callable[[Any], Awaitable[T]]) -> T:
        """Returns the result of a function of a connection, which may be called twice."""
        return self._runner.run(self._run(dsn, function))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.terminate()
        self._runner.close()

    async def _run(self, dsn: str, function: Callable[[Any], Awaitable[T]]) -> T:
        if connection := self._connections.pop(dsn, None):
            with suppress(*_LOST):
                return await self._kept(dsn, connection, function)
            connection.terminate()
        return await self._kept(dsn, await asyncpg.connect(dsn), function)

    async def _kept(self, dsn: str, connection: Any, function: Callable[[Any], Awaitable[T]]) -> T:
        result = await function(connection)
        self._connections[dsn] = connection
        while len(self._connections) > _MAX_DATABASES:
            self._connections.pop(next(iter(self._connections))).terminate()
        return result


def run_on_kept_connection(dsn: str, function: Callable[[Any], Awaitable[T]]) -> T:
    """Returns the result of a function of a connection, for the main thread. It may be called twice."""
    return _per_database().run(dsn, function)


@functools.cache
def _per_database() -> ConnectionPerDatabase:
    connections = ConnectionPerDatabase()
    atexit.register(connections.close)
    return connections


_of_parent_process: list[object] = []  # kept, because collecting them would close them with a warning


def leave_connections_to_parent() -> None:
    """Makes a forked process open connections of its own: it shares those of its parent with all other children."""
    for function in (_per_database, _of_main_thread):
        _of_parent_process.append(function())
        function.cache_clear()


def fetch(dsn: str, sql: str, *values: Any) -> list[Any]:
    """Returns the rows of a query."""
    if threading.current_thread() is threading.main_thread():
        return _of_main_thread().fetch(dsn, sql, *values)
    with closing(KeptConnection()) as connection:
        return connection.fetch(dsn, sql, *values)


@functools.cache
def _of_main_thread() -> KeptConnection:
    connection = KeptConnection()
    atexit.register(connection.close)
    return connection
