"""Statements inside a transaction, and the interface that a transaction and the database share."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypeVar, TypeVarTuple

from sso.db.statement import Statement
from sso.db.statement_monitor import StatementMonitor

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")
Row = Any
RunInThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]  # to be awaited on the asyncio loop


class Runner(Protocol):
    """Runs statements: a Database runs each in its own transaction, a Transaction runs all of them in one."""

    async def rows(self, statement: Statement, **values: Any) -> list[Row]: ...

    async def row(self, statement: Statement, **values: Any) -> Row | None: ...

    async def value(self, statement: Statement, **values: Any) -> Any: ...

    async def run_in_thread(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """Returns ``function(*arguments)``, called in a thread, so that other requests are served meanwhile."""
        ...


async def run_pure(runner: Runner, takes_long: bool, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Returns ``function(*arguments)``, called in a thread if it takes long, so that other requests are served."""
    return await runner.run_in_thread(function, *arguments) if takes_long else function(*arguments)


class Transaction:
    """The argument of a transaction's function. The function runs on the asyncio loop, so it may await nothing else."""

    def __init__(self, connection: Any, run_in_thread: RunInThread, monitor: StatementMonitor | None = None) -> None:
        self._connection = connection
        self._run_in_thread = run_in_thread
        self._monitor = monitor
        self.topics: set[str] = set()

    def publish_after_commit(self, topic: str) -> None:
        """Publishes a topic of the bus when the transaction is committed; nothing if it is rolled back."""
        self.topics.add(topic)

    async def rows(self, statement: Statement, **values: Any) -> list[Row]:
        rows: list[Row] = await self._run(self._connection.fetch, statement, values)
        return rows

    async def row(self, statement: Statement, **values: Any) -> Row | None:
        return await self._run(self._connection.fetchrow, statement, values)

    async def value(self, statement: Statement, **values: Any) -> Any:
        return await self._run(self._connection.fetchval, statement, values)

    async def run_in_thread(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        result: T = await self._run_in_thread(lambda: function(*arguments))
        return result

    def _run(
        self, fetch: Callable[..., Awaitable[Any]], statement: Statement, values: dict[str, Any]
    ) -> Awaitable[Any]:
        running = fetch(statement.sql, *statement.arguments(values))
        return running if self._monitor is None else self._monitor.run(statement.name, running)


async def run_in_transaction(
    function: Callable[[Transaction], Awaitable[T]],
    run_in_thread: RunInThread,
    monitor: StatementMonitor | None,
    begin_sql: str,
    connection: Any,
) -> tuple[T, set[str]]:
    """Calls ``function`` between ``begin_sql`` and COMMIT; rolls back and raises if it fails.

    Returns its result, and the topics that are to be published.
    """
    await connection.execute(begin_sql)
    transaction = Transaction(connection, run_in_thread, monitor)
    try:
        result = await function(transaction)
    except Exception:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    commit = connection.execute("COMMIT")
    await (commit if monitor is None else monitor.run("COMMIT", commit))
    return result, transaction.topics
