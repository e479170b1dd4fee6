"""The limit of requests to the console: per administrator, with the limit of the management API."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from sso.db.errors import DatabaseError
from sso.db.rate_limit import RateLimiter
from sso.perm.errors import TooManyAdminRequests

Result = TypeVar("Result")


class ConsoleLimit:
    def __init__(self, requests: RateLimiter, exports: RateLimiter) -> None:
        self._requests = requests
        self._exports = exports

    async def count_while(self, user_id: str, work: Callable[[], Awaitable[Result]]) -> Result:
        """Counts the request while ``work`` reads the database, so that the request takes no longer.

        Raises TooManyAdminRequests beyond the limit.
        """
        failures: list[Exception] = []

        async def count() -> None:
            try:
                _check(await self._requests.add_subject(f"user {user_id}"))
            except (TooManyAdminRequests, DatabaseError) as error:
                failures.append(error)  # raised below, because the nursery would wrap it in an ExceptionGroup

        results: list[Result] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            try:
                results.append(await work())
            except Exception as error:  # raised below, as it is
                failures.append(error)
        if failures:
            raise failures[0]
        return results[0]

    async def count_export(self, user_id: str) -> None:
        """Counts an export, which reads thousands of records, towards a lower limit. Raises TooManyAdminRequests."""
        _check(await self._exports.add_subject(f"user {user_id}"))


def _check(wait_s: int) -> None:
    if wait_s:
        raise TooManyAdminRequests(wait_s)
