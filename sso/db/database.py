"""The bridge from Trio to PostgreSQL: the only file that knows asyncio, but for the loop it runs on.

Three ways in: :meth:`Database.transaction` runs a function of several statements, a single statement runs by itself
(:meth:`Database.rows` and its shorter forms), and :class:`sso.db.batch.statement_batch.Batch` lets concurrent calls of
one operation share a statement. Each crosses the bridge once.

Every call is shielded from cancellation and has a deadline instead: a caller never has to wonder whether what it was
cancelled out of was committed. A request begins with a single statement, so its client is told within two seconds that
the database is away; several statements have longer, since they wait for locks while it is well.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, TypeVarTuple

import asyncpg
import orjson
import trio

from sso.db.asyncio_loop import FastAsyncioLoop
from sso.db.batch.scheduler import BatchScheduler
from sso.db.circuit_breaker import CircuitBreaker
from sso.db.errors import DeadlineExceeded, TransactionConflict, Unavailable, UniqueViolation
from sso.db.loop_lag import LoopLag
from sso.db.statement import Statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Row = Any

QUEUE_S = 1.5  # how long a call waits for a free connection
STATEMENT_S = 2.0  # how long a single statement may take, with the wait for a connection
TRANSACTION_S = 5.0  # how long several may take once they have one: they wait for each other's locks
MAX_QUEUE = 2000  # calls that may wait; beyond them, saying no at once is kinder
ATTEMPTS = 5
PROBE_S = 10.0  # a listening connection is asked this often whether it still lives

# The database gives up a little before we do: then it is known that nothing has happened.
SERVER_SETTINGS = {
    "application_name": "sso",
    "timezone": "UTC",
    "jit": "off",
    "statement_timeout": "1800",
    "lock_timeout": "1500",
    "idle_in_transaction_session_timeout": "10000",
    # Everything is found by a key. A plan is made once, perhaps while a table is empty, and must still be right when it
    # is large: so it may not consist of looking at all there is.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
TRANSACTION_SETTINGS = {"statement_timeout": "4500", "lock_timeout": "3000"}
_BEGIN = ";".join(["BEGIN", *(f"SET LOCAL {name} = {value}" for name, value in TRANSACTION_SETTINGS.items())])

_TRANSIENT = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
)
_GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutdown, starting up, statement timeout
    asyncpg.InsufficientResourcesError,  # disk full, too many connections
    asyncpg.PostgresSystemError,  # its disk, its files
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)


class Runner(Protocol):
    """Runs statements: a database each in a transaction of its own, a transaction all in one."""

    async def rows(self, statement: Statement, **values: Any) -> list[Row]: ...

    async def row(self, statement: Statement, **values: Any) -> Row | None: ...

    async def value(self, statement: Statement, **values: Any) -> Any: ...


class Transaction:
    """Handed to a transaction's function, which runs on the far side: it may await this and nothing else."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, statement: Statement, **values: Any) -> list[Row]:
        found: list[Row] = await self._connection.fetch(statement.sql, *statement.arguments(values))
        return found

    async def row(self, statement: Statement, **values: Any) -> Row | None:
        return await self._connection.fetchrow(statement.sql, *statement.arguments(values))

    async def value(self, statement: Statement, **values: Any) -> Any:
        return await self._connection.fetchval(statement.sql, *statement.arguments(values))


class Database:
    def __init__(self, dsn: str, loop: FastAsyncioLoop, size: int) -> None:
        self._dsn = dsn
        self._loop = loop
        self._size = size
        self._slots = trio.Semaphore(size)
        self._free: list[Any] = []
        self._pulse = CircuitBreaker()
        self._busy = LoopLag()
        self._closed = False
        self.traffic = BatchScheduler()

    @classmethod
    @asynccontextmanager
    async def open(cls, dsn: str, size: int = 8) -> AsyncIterator["Database"]:
        async with FastAsyncioLoop.open() as loop:
            database = cls(dsn, loop, size)
            trio.lowlevel.add_instrument(database._busy)
            try:
                yield database
            finally:
                trio.lowlevel.remove_instrument(database._busy)
                with trio.CancelScope(shield=True), trio.move_on_after(2):
                    await loop.run(database._close())

    async def transaction(
        self, work: Callable[[Transaction, *Ts], Awaitable[T]], *args: *Ts, run_s: float = TRANSACTION_S
    ) -> T:
        """Run ``work(tx, *args)`` in one transaction and return its result.

        It runs again after a conflict with another transaction, so it must read and write through ``tx`` only.
        """
        for attempt in range(ATTEMPTS):
            try:
                return await self._cross(partial(_transact, work, args), QUEUE_S + run_s)
            except TransactionConflict:
                if attempt + 1 == ATTEMPTS:
                    raise Unavailable("too many conflicts") from None
                await trio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - spreads, hides nothing
        raise AssertionError("unreachable")

    async def rows(self, statement: Statement, **values: Any) -> list[Row]:
        arguments = statement.arguments(values)
        return await self.run_sql(statement.sql, arguments)

    async def row(self, statement: Statement, **values: Any) -> Row | None:
        found = await self.rows(statement, **values)
        return found[0] if found else None

    async def value(self, statement: Statement, **values: Any) -> Any:
        found = await self.row(statement, **values)
        return found[0] if found else None

    async def run_sql(self, sql: str, arguments: list[Any]) -> list[Row]:
        return await self._cross(lambda connection: connection.fetch(sql, *arguments), STATEMENT_S)

    async def warm(self) -> None:
        """Open all the connections that there may be: a rush of requests is no time for it."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._size):
                nursery.start_soon(self._cross, _hold_a_moment, STATEMENT_S)

    async def ping(self) -> None:
        await self.run_sql("SELECT 1", [])

    async def _cross(self, work: Callable[[Any], Awaitable[T]], call_s: float) -> T:
        began = trio.current_time()
        if not self._pulse.may_try(within=STATEMENT_S):
            raise Unavailable("the database is away")
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            await self._wait_for_slot()
        limit = trio.CancelScope(shield=True, deadline=began + call_s)
        self._busy.limits.add(limit)
        try:
            with limit:
                return await self._loop.run(self._with_connection(work, began))
            self._pulse.failed(began)
            raise DeadlineExceeded("the database did not answer in time")
        finally:
            self._busy.limits.discard(limit)
            self._slots.release()

    async def _wait_for_slot(self) -> None:
        if self._slots.statistics().tasks_waiting >= MAX_QUEUE:
            raise Unavailable("too many calls are waiting")
        try:
            with trio.fail_after(QUEUE_S):
                await self._slots.acquire()
        except trio.TooSlowError:
            raise Unavailable("no connection became free") from None

    async def _with_connection(self, work: Callable[[Any], Awaitable[T]], began: float) -> T:
        connection = None
        try:
            connection = self._idle() or await _connect(self._dsn, QUEUE_S)
            result = await work(connection)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            self._give_back(connection)
            if connection is None:
                self._pulse.failed(began)
            elif not connection.is_closed():
                self._pulse.answered()  # with a no
            _translate(error)
        except Exception:
            self._give_back(connection)  # the caller's own: what it began is rolled back
            raise
        except BaseException:
            # Out of time: whether the statement still runs is unknown, so nobody may be given this connection again.
            if connection is not None:
                connection.terminate()
            raise
        self._give_back(connection)
        self._pulse.answered()
        return result

    def _idle(self) -> Any | None:
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        return None

    def _give_back(self, connection: Any | None) -> None:
        if connection is None or connection.is_closed():
            return
        if self._closed or connection.is_in_transaction():
            connection.terminate()
        else:
            self._free.append(connection)

    async def _close(self) -> None:
        self._closed = True
        while self._free:
            connection = self._free.pop()
            try:
                await connection.close(timeout=1)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()

    async def listen(self, channel: str, deliver: Callable[[str], None], connected: Callable[[], None]) -> NoReturn:
        """Hand every notification to ``deliver`` on a connection of its own, until it is lost: then Unavailable."""
        await self._loop.run(self._listen(channel, deliver, connected))
        raise AssertionError("unreachable")

    async def _listen(self, channel: str, deliver: Callable[[str], None], connected: Callable[[], None]) -> NoReturn:
        connection = None
        try:
            connection = await _connect(self._dsn, QUEUE_S)
            lost = asyncio.get_running_loop().create_future()
            connection.add_termination_listener(lambda _: lost.cancel())
            await connection.add_listener(channel, lambda _connection, _pid, _channel, payload: deliver(payload))
            connected()
            while True:
                await asyncio.wait([lost], timeout=PROBE_S)
                if lost.cancelled():
                    raise Unavailable("the listening connection was lost")
                # A connection whose other end silently went away looks alive until it is used.
                await connection.fetchval("SELECT 1", timeout=3)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            # An internal error: it was lost in the middle of being opened, or of being asked.
            _translate(error)
        finally:
            if connection is not None and not connection.is_closed():
                connection.terminate()


async def _hold_a_moment(_connection: Any) -> None:
    """So that the next one finds none free, and opens another."""
    await asyncio.sleep(0.02)


async def _transact(work: Callable[[Transaction, *Ts], Awaitable[T]], args: tuple[*Ts], connection: Any) -> T:
    await connection.execute(_BEGIN)
    try:
        result = await work(Transaction(connection), *args)
    except Exception:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")
    return result


async def _connect(dsn: str, timeout: float) -> Any:  # noqa: ASYNC109 - asyncio's own way of limiting
    connection = await asyncpg.connect(
        dsn,
        timeout=timeout,
        server_settings=SERVER_SETTINGS,
        max_cached_statement_lifetime=0,  # no end: PostgreSQL plans anew by itself when it has counted a table again
    )
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=lambda value: orjson.dumps(value).decode(), decoder=orjson.loads
    )
    return connection


def _translate(error: BaseException) -> NoReturn:
    """The driver's errors in our words. Its messages may quote values, so they are not passed on."""
    if isinstance(error, asyncpg.UniqueViolationError):
        raise UniqueViolation(str(error.constraint_name)) from None
    if isinstance(error, _TRANSIENT):
        raise TransactionConflict(type(error).__name__) from None
    if isinstance(error, _GONE) and not isinstance(error, asyncpg.DataError):
        raise Unavailable(type(error).__name__) from None
    if isinstance(error, asyncpg.PostgresError):
        error.detail = error.hint = None  # they quote whole rows, and this error is logged
    raise error


def run_outside(dsn: str, sql: str) -> Any:
    """One value, outside Trio and with nothing to import: for a quick look at the start."""

    async def run() -> Any:
        try:
            connection = await asyncpg.connect(dsn, timeout=10)
        except ValueError:  # and not its words, which may quote a password
            raise Unavailable("its address is not understood") from None
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return _run_asyncio(run())


def run_with_connection(dsn: str, work: "Callable[[Connection], T]") -> T:
    """Run ``work`` with an ordinary SQLAlchemy connection, outside Trio: for migrations."""
    # Slow to import, and needed only when there is something to migrate.
    from sqlalchemy import NullPool
    from sqlalchemy.ext.asyncio import create_async_engine

    async def run() -> T:
        engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(dsn, timeout=10), poolclass=NullPool
        )
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    return _run_asyncio(run())


def _run_asyncio(work: Coroutine[Any, Any, T]) -> T:
    try:
        with asyncio.Runner() as runner:
            return runner.run(work)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        _translate(error)
