"""What the records of commands need of the management API, however it is reached."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.client import ApiCall, RecordChanged
from sso.client.clients import AsyncCalls
from sso.core.operator_call import Progress

T = TypeVar("T")

PAGE = 200
ATTEMPTS = 5


class CommandApi(AsyncCalls):
    async def send_with_progress(self, call: ApiCall[T], progress: Progress) -> T:
        """Sends a request that may take long. A server that is reached over HTTPS reports no progress."""
        return await self.send(call)


async def with_present_version(attempt: Callable[[], Awaitable[T]]) -> T:
    """Runs ``attempt``, which reads a record and changes this version of it, again if the record has changed."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except RecordChanged:
            continue
    return await attempt()
