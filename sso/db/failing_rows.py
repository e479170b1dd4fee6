"""Finds the rows that make a bulk statement fail, so that the other rows are still written."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.db.errors import DatabaseError

Row = TypeVar("Row")


async def isolate_failing_rows(
    statement: Callable[[list[Row]], Awaitable[None]], rows: list[Row], on_failure: Callable[[Row, Exception], None]
) -> None:
    """Runs ``statement`` with all rows. If it fails, runs it with each half, down to single rows.

    Calls ``on_failure`` for every single row that fails. ``statement`` may run several times with the same row. A
    DatabaseError is not the fault of a row and is raised.
    """
    try:
        await statement(rows)
    except DatabaseError:
        raise
    except Exception as error:
        if len(rows) == 1:
            on_failure(rows[0], error)
            return
        middle = len(rows) // 2
        await isolate_failing_rows(statement, rows[:middle], on_failure)
        await isolate_failing_rows(statement, rows[middle:], on_failure)
