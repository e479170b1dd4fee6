"""Changes records of a server as they were read: another change in between is noticed, and the change made anew."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.client import RecordChanged

T = TypeVar("T")

ATTEMPTS = 5


async def with_present_version(attempt: Callable[[], Awaitable[T]]) -> T:
    """Runs ``attempt``, which reads a record and changes this version of it, again if the record has changed."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except RecordChanged:
            continue
    return await attempt()
