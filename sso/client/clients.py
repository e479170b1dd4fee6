"""The two clients: ``SsoClient`` for ordinary programs, ``AsyncSsoClient`` for asyncio and Trio."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from sso.client.call import ApiCall, ListCall, Record, RecordPage, read_page
from sso.client.credentials import Calls, Credentials
from sso.client.exchange import Send, Step, Steps, Wait, exchange, run_calls
from sso.client.limited_response import MAX_RESPONSE_BYTES, LimitedResponse

T = TypeVar("T")

TIMEOUT_S, RETRIES = 30.0, 3
POLL_S = 30  # how long the server holds a request of the change stream
# A compressed response may be thousands of times as large when it is decompressed.
HEADERS = {"User-Agent": "sso-client", "Accept-Encoding": "identity"}


def changes_page(after: str, wait_s: int) -> ListCall:
    """A page of the change stream. Without events, the server waits for some."""
    query = {"wait": wait_s, **({"after": after} if after else {})}
    return ListCall("GET", "/api/admin/changes", read_page, query, timeout_s=wait_s + TIMEOUT_S)


def _arguments(step: Send) -> dict[str, Any]:
    call = step.request
    arguments: dict[str, Any] = {"params": dict(call.query) or None, "headers": step.headers}
    if call.form is not None:
        arguments["data"] = dict(call.form)
    elif call.json is not None:
        arguments["json"] = call.json
    if call.timeout_s is not None:
        arguments["timeout"] = call.timeout_s
    return arguments


class SsoClient:
    """Sends requests and waits for their answers."""

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        *,
        retries: int = RETRIES,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        **options: Any,
    ) -> None:
        """``options`` are those of ``httpx.Client``, such as ``verify`` and ``timeout``."""
        self.credentials = credentials
        self._retries = retries
        self._max_bytes = max_response_bytes
        self._http = httpx.Client(base_url=url, headers=HEADERS, **{"timeout": TIMEOUT_S, **options})

    def send(self, call: ApiCall[T]) -> T:
        """Returns the result. Raises ClientError."""
        return self._run(exchange(call, self.credentials, self._retries))

    def run(self, calls: Calls[T]) -> T:
        """Sends the requests of a sign-in, such as ``UserLogin.sign_in``, and returns its result."""
        return self._run(run_calls(calls, self._retries))

    def pages(self, call: ListCall) -> Iterator[Record]:
        """Yields the records of all pages."""
        following: ListCall | None = call
        while following:
            page = self.send(following)
            yield from page.records
            following = following.page_after(page.next) if page.next else None

    def records(self, call: ListCall, limit: int) -> list[Record]:
        """Returns the first records, from as many pages as they need."""
        return list(islice(self.pages(call), limit))

    def changes(self, after: str = "", poll_s: int = POLL_S) -> Iterator[Record]:
        """Yields the events of the change stream after this one, for ever. Keep the ``id`` of the last one."""
        while True:
            page = self.send(changes_page(after, poll_s))
            yield from page.records
            after = page.next or after

    def _run(self, steps: Steps[T]) -> T:
        outcome = None
        try:
            while True:
                outcome = self._perform(steps.send(outcome))
        except StopIteration as done:
            result: T = done.value
            return result

    def _perform(self, step: Step) -> httpx.Response | httpx.TransportError | None:
        if isinstance(step, Wait):
            import time

            time.sleep(step.seconds)
            return None
        try:
            with self._http.stream(step.request.method, step.request.path, **_arguments(step)) as response:
                received = LimitedResponse(response, self._max_bytes)
                for piece in response.iter_raw():
                    received.add(piece)
        except httpx.TransportError as error:
            return error
        return received.complete()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncCalls(ABC):
    """Sends requests, however they reach the service."""

    @abstractmethod
    async def send(self, call: ApiCall[T]) -> T:
        """Returns the result. Raises ClientError."""

    async def pages(self, call: ListCall) -> AsyncGenerator[Record]:
        """Yields the records of all pages."""
        following: ListCall | None = call
        while following:
            page = await self.send(following)
            for record in page.records:
                yield record
            following = following.page_after(page.next) if page.next else None

    async def records(self, call: ListCall, limit: int) -> list[Record]:
        """Returns the first records, from as many pages as they need."""
        found: list[Record] = []
        async with aclosing(self.pages(call)) as records:
            async for record in records:
                if len(found) >= limit:
                    break
                found.append(record)
        return found


class AsyncSsoClient(AsyncCalls):
    """The same for asyncio and Trio."""

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        *,
        retries: int = RETRIES,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        **options: Any,
    ) -> None:
        """``options`` are those of ``httpx.AsyncClient``."""
        self.credentials = credentials
        self._retries = retries
        self._max_bytes = max_response_bytes
        self._http = httpx.AsyncClient(base_url=url, headers=HEADERS, **{"timeout": TIMEOUT_S, **options})

    async def send(self, call: ApiCall[T]) -> T:
        """Returns the result. Raises ClientError."""
        return await self._run(exchange(call, self.credentials, self._retries))

    async def run(self, calls: Calls[T]) -> T:
        """Sends the requests of a sign-in, such as ``UserLogin.sign_in``, and returns its result."""
        return await self._run(run_calls(calls, self._retries))

    async def changes(self, after: str = "", poll_s: int = POLL_S) -> AsyncGenerator[Record]:
        """Yields the events of the change stream after this one, for ever. Keep the ``id`` of the last one.

        A program that stops earlier uses ``contextlib.aclosing``.
        """
        while True:
            page: RecordPage = await self.send(changes_page(after, poll_s))
            for record in page.records:
                yield record
            after = page.next or after

    async def _run(self, steps: Steps[T]) -> T:
        outcome = None
        try:
            while True:
                outcome = await self._perform(steps.send(outcome))
        except StopIteration as done:
            result: T = done.value
            return result

    async def _perform(self, step: Step) -> httpx.Response | httpx.TransportError | None:
        if isinstance(step, Wait):
            import anyio

            await anyio.sleep(step.seconds)
            return None
        try:
            async with self._http.stream(step.request.method, step.request.path, **_arguments(step)) as response:
                received = LimitedResponse(response, self._max_bytes)
                async for piece in response.aiter_raw():
                    received.add(piece)
        except httpx.TransportError as error:
            return error
        return received.complete()

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
