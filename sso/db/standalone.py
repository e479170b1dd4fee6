"""Database access outside Trio: for migrations and for checks before the server starts."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from sso.db.driver_errors import raise_translated
from sso.db.errors import Unavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
CONNECT_S = 10


def fetch_value(dsn: str, *statements: str) -> Any:
    """Returns the first value of the first row of the last statement, None if an earlier one returns NULL."""

    async def run() -> Any:
        try:
            connection = await asyncpg.connect(dsn, timeout=CONNECT_S)
        except ValueError:  # its text is dropped: it may quote a password
            raise Unavailable("the database URL is not valid") from None
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


def run_with_connection(dsn: str, function: "Callable[[Connection], T]") -> T:
    """Calls ``function`` with a SQLAlchemy connection, which Alembic needs."""
    # Slow to import, and needed only when there is something to migrate.
    from sqlalchemy import NullPool
    from sqlalchemy.ext.asyncio import create_async_engine

    async def run() -> T:
        engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(dsn, timeout=CONNECT_S), poolclass=NullPool
        )
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(function)
        finally:
            await engine.dispose()

    return _run(run())


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        with asyncio.Runner() as runner:
            return runner.run(work)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise_translated(error)
