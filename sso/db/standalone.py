"""Database access outside Trio: for migrations and for checks before the server starts."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sso.core.database_url import DatabaseHost, database_hosts
from sso.db.connection import open_plain
from sso.db.driver_errors import DRIVER_ERRORS, describe_failure, raise_translated
from sso.db.errors import Unavailable
from sso.db.race import find_primary, open_only_host

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
CONNECT_S = 10.0

_last_primary: dict[str, DatabaseHost] = {}  # by DSN: a command opens several connections, one after another


def fetch_value(dsn: str, *statements: str, connect_s: float = CONNECT_S) -> Any:
    """Returns the first value of the first row of the last statement, None if an earlier one returns NULL."""

    async def run() -> Any:
        connection = await _connect(dsn, connect_s)
        try:
            value = None
            for sql in statements:
                value = await connection.fetchval(sql)
                if value is None:
                    break
            return value
        finally:
            await connection.close()

    return _run(run())


def host_states(dsn: str, seconds: float = 3.0) -> dict[DatabaseHost, str]:
    """Returns what each host of the URL is: "primary", "standby", or why it cannot be used."""
    hosts = database_hosts(dsn)

    async def state(host: DatabaseHost) -> str:
        try:
            async with asyncio.timeout(seconds):
                connection = await open_plain(dsn, host, seconds, "any")
                try:
                    return "standby" if await connection.fetchval("SELECT pg_is_in_recovery()") else "primary"
                finally:
                    connection.terminate()
        except DRIVER_ERRORS as error:
            return describe_failure(error)

    async def run() -> list[str]:
        return await asyncio.gather(*map(state, hosts))

    return dict(zip(hosts, _run(run()), strict=True))


def run_with_connection(dsn: str, function: "Callable[[Connection], T]") -> T:
    """Calls ``function`` with a SQLAlchemy connection, which Alembic needs. Its errors are those of `fetch_value`."""
    # Slow to import, and needed only when there is something to migrate.
    from sqlalchemy import NullPool
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import create_async_engine

    async def run() -> T:
        engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=partial(_connect, dsn, CONNECT_S), poolclass=NullPool
        )
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(function)
        except DBAPIError as error:  # it wraps the error of the driver twice
            raise (error.orig and error.orig.__cause__) or error from None
        finally:
            await engine.dispose()

    return _run(run())


async def _connect(dsn: str, seconds: float) -> Any:
    """Connects to the primary, if the URL has several hosts."""
    try:
        hosts = database_hosts(dsn)
        if len(hosts) < 2:
            return await open_only_host(hosts, open_plain(dsn, None, seconds))
        open_host = partial(_open_host, dsn, seconds)
        _last_primary[dsn], connection = await find_primary(hosts, open_host, _last_primary.get(dsn), seconds)
    except ValueError:  # its text is dropped: it may quote a password
        raise Unavailable("the database URL is not valid, or its sslmode needs sslrootcert") from None
    return connection


async def _open_host(dsn: str, seconds: float, host: DatabaseHost) -> Any:
    return await open_plain(dsn, host, seconds)


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        with asyncio.Runner() as runner:
            return runner.run(work)
    except DRIVER_ERRORS as error:
        raise_translated(error)
