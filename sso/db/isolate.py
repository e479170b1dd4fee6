"""Finds the bad items of a statement for many items, so that they do not fail the others."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.db.errors import DatabaseError

T = TypeVar("T")


async def isolate_failures(
    function: Callable[[list[T]], Awaitable[None]], items: list[T], on_failure: Callable[[T, Exception], None]
) -> None:
    """Calls ``function`` with all items. If it fails, calls it with halves of them, until single items fail: those go
    to ``on_failure``.

    ``function`` may be called again with the same items. A DatabaseError is no item's fault and is raised.
    """
    try:
        await function(items)
    except DatabaseError:
        raise
    except Exception as error:
        if len(items) == 1:
            on_failure(items[0], error)
            return
        middle = len(items) // 2
        await isolate_failures(function, items[:middle], on_failure)
        await isolate_failures(function, items[middle:], on_failure)
