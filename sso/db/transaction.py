"""Statements inside a transaction, and the interface that a transaction and the database share."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from sso.db.statement import Statement

T = TypeVar("T")
Row = Any

# Transactions have more time than single statements, because they wait for each other's locks.
TRANSACTION_SETTINGS = {"statement_timeout": "4500", "lock_timeout": "3000"}
_BEGIN = ";".join(["BEGIN", *(f"SET LOCAL {name} = {value}" for name, value in TRANSACTION_SETTINGS.items())])


class Runner(Protocol):
    """Runs statements: a Database runs each in its own transaction, a Transaction runs all of them in one."""

    async def rows(self, statement: Statement, **values: Any) -> list[Row]: ...

    async def row(self, statement: Statement, **values: Any) -> Row | None: ...

    async def value(self, statement: Statement, **values: Any) -> Any: ...


class Transaction:
    """The argument of a transaction's function. The function runs on the asyncio loop, so it may await nothing else."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, statement: Statement, **values: Any) -> list[Row]:
        rows: list[Row] = await self._connection.fetch(statement.sql, *statement.arguments(values))
        return rows

    async def row(self, statement: Statement, **values: Any) -> Row | None:
        return await self._connection.fetchrow(statement.sql, *statement.arguments(values))

    async def value(self, statement: Statement, **values: Any) -> Any:
        return await self._connection.fetchval(statement.sql, *statement.arguments(values))


async def run_in_transaction(function: Callable[[Transaction], Awaitable[T]], connection: Any) -> T:
    """Calls ``function`` between BEGIN and COMMIT; rolls back and raises if it fails."""
    await connection.execute(_BEGIN)
    try:
        result = await function(Transaction(connection))
    except Exception:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")
    return result
