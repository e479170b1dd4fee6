"""PostgreSQL for Trio code: asyncpg on an asyncio loop inside Trio.

There are three ways to run SQL. :meth:`Database.transaction` runs a function of several statements. A single statement
runs in its own transaction (:meth:`Database.rows` and its shorter forms). Concurrent calls of one operation share a
statement with :class:`sso.db.batch.statement_batch.Batch`. Each of them enters the asyncio loop once.

Every call is shielded from cancellation and has a deadline instead, so cancellation never leaves it unknown whether a
statement was committed. A request begins with a single statement, so its client learns within two seconds (with the
usual :class:`sso.db.time_limits.TimeLimits`) that the database is unavailable.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple

import trio

from sso.core.thread_pool import ThreadPool
from sso.db.asyncio_loop import FastAsyncioLoop
from sso.db.batch.scheduler import BatchScheduler
from sso.db.call_deadlines import CallDeadlines
from sso.db.circuit_breaker import CircuitBreaker
from sso.db.clock import DatabaseClock
from sso.db.connection_share import ConnectionShares, current_share
from sso.db.connector import Connector
from sso.db.driver_errors import DRIVER_ERRORS, is_read_only, raise_translated
from sso.db.errors import DatabaseError, DeadlineExceeded, ReadOnly, Unavailable
from sso.db.pool import ConnectionPool
from sso.db.statement import Statement
from sso.db.statement_monitor import StatementMonitor
from sso.db.statement_name import function_name
from sso.db.time_limits import USUAL, TimeLimits
from sso.db.transaction import Row, Transaction, run_in_transaction
from sso.db.transaction_retries import retry_conflicts, retry_lock_timeouts
from sso.telemetry.spans import Telemetry

Arguments = TypeVarTuple("Arguments")
P = ParamSpec("P")
T = TypeVar("T")

MAX_QUEUE = 2000  # calls that may wait for a connection; further ones fail at once
MAX_THREADS = 2  # for work with large rows


class Database:
    def __init__(
        self,
        dsn: str,
        loop: FastAsyncioLoop,
        size: int,
        slow_ms: int = 0,
        telemetry: Telemetry | None = None,
        limits: TimeLimits = USUAL,
    ) -> None:
        self._loop = loop
        self.limits = limits
        self._begin_sql = limits.begin_sql
        self._size = size
        self._slots = trio.Semaphore(size)
        self.shares = ConnectionShares(size)
        self._threads = ThreadPool(MAX_THREADS)
        self.dsn = dsn
        self.connector = Connector(dsn, limits)
        self._pool = ConnectionPool(self.connector)
        self._breaker = CircuitBreaker()
        self.deadlines = CallDeadlines()
        self.epoch = 0  # counts opened connections: those before and after may be of different servers
        self.scheduler = BatchScheduler()
        self.clock = DatabaseClock()
        self.telemetry = telemetry
        self.publish_topic: Callable[[str], None] = lambda _topic: None  # set to a function of the bus
        self._monitor = StatementMonitor(slow_ms, telemetry) if slow_ms or telemetry else None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        dsn: str,
        size: int = 8,
        slow_ms: int = 0,
        telemetry: Telemetry | None = None,
        limits: TimeLimits = USUAL,
    ) -> AsyncIterator["Database"]:
        """Yields a database with at most ``size`` connections, which are opened as needed.

        Statements that take ``slow_ms`` or longer are logged; 0 logs none.
        """
        async with FastAsyncioLoop.open() as loop:
            database = cls(dsn, loop, size, slow_ms, telemetry, limits)
            trio.lowlevel.add_instrument(database.deadlines)
            try:
                yield database
            finally:
                trio.lowlevel.remove_instrument(database.deadlines)
                with trio.CancelScope(shield=True), trio.move_on_after(2):
                    await loop.run(database._pool.close())

    async def transaction(
        self, function: Callable[Concatenate[Transaction, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns ``function(transaction, *args, **kwargs)``, called in one transaction.

        It is called again if the transaction conflicts with another, so it must only read and write the database.
        """
        return await self.long_transaction(self.limits.transaction_s, function, *args, **kwargs)

    async def long_transaction(
        self,
        seconds: float,
        function: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like :meth:`transaction`, with a deadline that may be later than the usual one."""
        with self._traced(function):
            return await self._run_transaction(lambda tx: function(tx, *args, **kwargs), seconds, self._begin_sql)

    async def contended_transaction(
        self,
        seconds: float,
        function: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like :meth:`long_transaction`, for rows that others lock for long: waiting for them takes no connection.

        If a lock is not free soon, the transaction is rolled back. It is run again after a pause until ``seconds`` have
        passed; then this raises LockTimeout.
        """
        begin_sql = self.limits.begin_contended_sql
        run = partial(self._run_transaction, lambda tx: function(tx, *args, **kwargs), seconds, begin_sql)
        with self._traced(function):
            return await retry_lock_timeouts(max(seconds, self.limits.transaction_s), run)

    def _traced(self, function: Callable[..., Any]) -> AbstractContextManager[object]:
        return nullcontext() if self.telemetry is None else self.telemetry.statement(function_name(function))

    async def _run_transaction(self, call: Callable[[Transaction], Awaitable[T]], seconds: float, begin_sql: str) -> T:
        run_in_thread = partial(self._loop.trio_as_future, self.deadlines.run_in_thread, self._threads)
        run = partial(run_in_transaction, call, run_in_thread, self._monitor, begin_sql)
        seconds = self.limits.queue_s + max(seconds, self.limits.transaction_s)
        result, topics = await retry_conflicts(lambda: self._run(run, seconds))
        for topic in topics:
            self.publish_topic(topic)
        return result

    async def rows(self, statement: Statement, **values: Any) -> list[Row]:
        """Returns the rows of a statement, which is run again if it conflicts with another transaction."""
        arguments = statement.arguments(values)
        return await retry_conflicts(lambda: self.run_sql(statement.sql, arguments, statement.name))

    async def row(self, statement: Statement, **values: Any) -> Row | None:
        """Returns the first row, None if there is none."""
        rows = await self.rows(statement, **values)
        return rows[0] if rows else None

    async def value(self, statement: Statement, **values: Any) -> Any:
        """Returns the first value of the first row, None if there is no row."""
        row = await self.row(statement, **values)
        return row[0] if row else None

    async def run_sql(self, sql: str, arguments: list[Any], name: str = "sql", items: int = 0) -> list[Row]:
        """Runs one statement. ``name`` is used in logs and traces; ``items`` is the size of an uncancellable batch."""
        run = partial(self._run_now, shield=True) if items else self._run
        monitor = self._monitor
        if monitor is None:
            return await run(lambda connection: connection.fetch(sql, *arguments), self.limits.statement_s)
        return await run(
            lambda connection: monitor.run(name, connection.fetch(sql, *arguments), items), self.limits.statement_s
        )

    async def run_in_thread(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """Returns ``function(*arguments)``, called in a thread, so that other requests are served meanwhile."""
        return await self._threads.run(function, *arguments)

    async def open_connections(self) -> None:
        """Opens all connections, so that the first burst of requests does not wait for them."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._size):
                nursery.start_soon(self._run, _occupy, self.limits.statement_s)

    async def ping(self) -> None:
        await self.run_sql("SELECT 1", [], "ping")

    def observe_slow_statements(self, observer: Callable[[str], None]) -> None:
        """Calls ``observer`` with the name of each slow statement from now on."""
        if self._monitor is not None:
            self._monitor.slow_observers.append(observer)

    @property
    def pool_size(self) -> int:
        return self._size

    @property
    def busy_connections(self) -> int:
        return self._size - self._slots.value

    @property
    def waiting_calls(self) -> int:
        """Calls that wait for a free connection."""
        return self._slots.statistics().tasks_waiting

    @property
    def is_circuit_open(self) -> bool:
        """Whether calls fail at once because the database does not answer."""
        return self._breaker.is_open

    async def run_on_asyncio(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Awaits a coroutine on the asyncio loop that the connections use."""
        return await self._loop.run(coroutine)

    async def _run(self, function: Callable[[Any], Awaitable[T]], seconds: float) -> T:
        """Returns ``function(connection)``, after a turn in the share of the request, if it has one."""
        use = current_share.get()
        if use is None:
            return await self._run_now(function, seconds)
        async with use.share.turn(use.lanes):
            return await self._run_now(function, seconds)

    async def _run_now(self, function: Callable[[Any], Awaitable[T]], seconds: float, *, shield: bool = False) -> T:
        """Returns ``function(connection)``, awaited on the asyncio loop. ``shield``: also the wait for a connection."""
        began = trio.current_time()
        try:
            return await self._run_until(began + seconds, function, began, shield)
        except ReadOnly:
            if not self.connector.has_several_hosts:
                raise
        # Nothing was written, and another host is the primary now or soon.
        return await self._run_until(began + seconds, function, began, shield)

    async def _run_until(self, end: float, function: Callable[[Any], Awaitable[T]], began: float, shield: bool) -> T:
        if not self._breaker.allows_call(self.limits.statement_s):
            raise Unavailable("the database is unavailable")
        if not shield:
            await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            await self._wait_for_slot(shield)
        scope = self.deadlines.open_scope(end)
        try:
            with scope:
                return await self._loop.run(self._with_connection(function, began))
            self._breaker.record_failure(began)
            reason = "the service stops" if end > self.deadlines.end else "the database did not answer in time"
            raise DeadlineExceeded(reason)
        finally:
            self.deadlines.scopes.discard(scope)
            self._slots.release()

    async def _wait_for_slot(self, shield: bool) -> None:
        if self._slots.statistics().tasks_waiting >= MAX_QUEUE:
            raise Unavailable("too many calls are waiting")
        try:
            with trio.fail_after(self.limits.queue_s, shield=shield):
                await self._slots.acquire()
        except trio.TooSlowError:
            raise Unavailable("no connection became free") from None

    async def _with_connection(self, function: Callable[[Any], Awaitable[T]], began: float) -> T:
        pool = self._pool
        connection = pool.take_idle() or await self._open_connection(began)
        try:
            result = await function(connection)
        except DRIVER_ERRORS as error:
            if not connection.is_closed():
                self._breaker.record_success()  # an error, but an answer
            if is_read_only(error):
                pool.reject(connection)
            else:
                pool.give_back(connection)
            raise_translated(error)
        except Exception:
            pool.give_back(connection)  # an error of the caller's function: its transaction is rolled back
            raise
        except BaseException:
            # Out of time: the statement may still be running, so the connection cannot be used again.
            connection.terminate()
            if self._breaker.record_failure(began):
                pool.drop_idle()  # their server does not answer either
            raise
        pool.give_back(connection)
        self._breaker.record_success()
        return result

    async def _open_connection(self, began: float) -> Any:
        try:
            connection = await self._pool.open_connection()
        except (*DRIVER_ERRORS, DatabaseError) as error:
            self._breaker.record_failure(began)
            raise_translated(error)
        self.epoch += 1
        return connection


async def _occupy(_connection: Any) -> None:
    """Holds the connection for a moment, so that the next caller opens another one."""
    await asyncio.sleep(0.02)
