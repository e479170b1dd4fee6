"""One bad row must not fail the others that a statement is about."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.db.errors import DatabaseError

T = TypeVar("T")


async def isolate(
    work: Callable[[list[T]], Awaitable[None]], items: list[T], failed: Callable[[T, Exception], None]
) -> None:
    """Do ``work`` for all items. If it fails, do it for halves of them, until ``failed`` gets the items at fault.

    ``work`` may be done again for the same items. A DatabaseError is no item's fault and is raised.
    """
    try:
        await work(items)
    except DatabaseError:
        raise
    except Exception as error:
        if len(items) == 1:
            failed(items[0], error)
            return
        middle = len(items) // 2
        await isolate(work, items[:middle], failed)
        await isolate(work, items[middle:], failed)
