"""A document of a provider, such as its keys, that is cached and read again now and then."""

import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from sso.upstream.errors import ProviderUnavailable

WAIT_S = 1.0  # for the request of another caller, if there is an older document
RETRY_S = 10.0  # after a failure, if there is an older document
MAX_STALE_S = 86400.0  # how long a document is used while the provider does not answer

Content = TypeVar("Content")


class ProviderDocument(Generic[Content]):
    """One caller at a time reads it. Others use the older document meanwhile, so that an address that does not answer
    stops only the callers that need a newer one."""

    def __init__(self, read: Callable[[], Awaitable[Content]]) -> None:
        self._read = read
        self._content: Content | None = None
        self._read_at = self._failed_at = -math.inf
        self._problem = ""  # why the last request has failed
        self._lock = trio.Lock()

    async def get(self, max_age_s: float) -> Content:
        """Returns the document, an older one while the provider does not answer. Raises UpstreamError."""
        content = self._content
        if content is None or self._age() > MAX_STALE_S:
            return await self.get_newer(max_age_s)
        if self._age() <= max_age_s or self._lock.locked():
            return content
        try:
            return await self.get_newer(max_age_s)
        except ProviderUnavailable:
            return content

    async def get_newer(self, max_age_s: float) -> Content:
        """Returns the document, which is never older than ``max_age_s``. Raises UpstreamError."""
        if self._content is not None and self._age() <= max_age_s:
            return self._content
        asked_at = trio.current_time()
        await self._wait_for_others()
        try:
            if self._failed_at >= asked_at:  # the request of another caller, which this one has waited for
                raise ProviderUnavailable(self._problem)
            if self._content is None or self._age() > max_age_s:
                self._content = await self._request()
            return self._content
        finally:
            self._lock.release()

    async def _wait_for_others(self) -> None:
        try:
            with trio.fail_after(math.inf if self._content is None else WAIT_S):
                await self._lock.acquire()
        except trio.TooSlowError:
            raise ProviderUnavailable("the provider is being asked, and has not answered yet") from None

    async def _request(self) -> Content:
        if self._content is not None and trio.current_time() - self._failed_at < RETRY_S:
            raise ProviderUnavailable(self._problem)
        try:
            content = await self._read()
        except ProviderUnavailable as error:
            self._failed_at, self._problem = trio.current_time(), error.reason
            raise
        self._read_at = trio.current_time()
        return content

    def _age(self) -> float:
        return trio.current_time() - self._read_at
