"""The two clients: ``SsoClient`` for ordinary programs, ``AsyncSsoClient`` for asyncio and Trio."""

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from sso.client.call import ApiCall, ListCall, Record
from sso.client.credentials import Calls, Credentials
from sso.client.event_stream import OpenStream, Outcome, ReadStream, follow
from sso.client.exchange import Acquire, Step, Steps, Wait, exchange, run_calls
from sso.client.limited_response import MAX_RESPONSE_BYTES, LimitedResponse
from sso.client.permissions import RuleQuestion, check_calls
from sso.client.shared_credentials import SharedSignIn, TaskCredentials, TaskLock, ThreadCredentials
from sso.client.stream_connection import AsyncEventStream, EventStream, request_arguments

T = TypeVar("T")

TIMEOUT_S, RETRIES = 30.0, 2
# A compressed response may be thousands of times as large when it is decompressed.
HEADERS = {"User-Agent": "sso-client", "Accept-Encoding": "identity"}


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
        self._sign_in: SharedSignIn[AbstractContextManager[object]] = SharedSignIn(threading.RLock())
        self._retries = retries
        self._max_bytes = max_response_bytes
        self._http = httpx.Client(base_url=url, headers=HEADERS, **{"timeout": TIMEOUT_S, **options})

    def send(self, call: ApiCall[T]) -> T:
        """Returns the result. Raises ClientError."""
        return self._run(exchange(call, self._shared_credentials(), self._retries))

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

    def check(self, questions: Sequence[RuleQuestion | tuple[str, int, str]]) -> list[bool]:
        """Returns whether each user has the rule at the application. What may not be asked is False."""
        return [answer for call in check_calls(questions) for answer in self.send(call)]

    def changes(self, after: str = "") -> Iterator[Record]:
        """Yields the events of the change stream after this one, for ever. Keep the ``id`` of the last one.

        An event ``reset`` means that some were missed: read again what you keep.
        """
        steps = follow(self._shared_credentials(), after, self._retries)
        outcome: Outcome = None
        stream = EventStream(self._http, self._max_bytes)
        try:
            while True:
                step, outcome = steps.send(outcome), None
                if isinstance(step, Record):
                    yield step
                elif isinstance(step, ReadStream):
                    outcome = stream.read()
                elif isinstance(step, OpenStream):
                    outcome = stream.open(step)
                else:
                    outcome = self._perform(step)
        finally:
            steps.close()
            stream.close()

    def _shared_credentials(self) -> Credentials | None:
        return ThreadCredentials(self.credentials, self._sign_in) if self.credentials is not None else None

    def _run(self, steps: Steps[T]) -> T:
        outcome = None
        try:
            while True:
                outcome = self._perform(steps.send(outcome))
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            steps.close()  # whatever happened, the lock is free again

    def _perform(self, step: Step) -> httpx.Response | httpx.TransportError | None:
        if isinstance(step, Wait):
            import time

            time.sleep(step.seconds)
            return None
        assert not isinstance(step, Acquire)  # threads have ThreadCredentials
        try:
            with self._http.stream(step.request.method, step.request.path, **request_arguments(step)) as response:
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

    async def check(self, questions: Sequence[RuleQuestion | tuple[str, int, str]]) -> list[bool]:
        """Returns whether each user has the rule at the application. What may not be asked is False."""
        return [answer for call in check_calls(questions) for answer in await self.send(call)]

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
        self._sign_in: SharedSignIn[TaskLock] | None = None  # its lock belongs to the running event loop
        self._retries = retries
        self._max_bytes = max_response_bytes
        self._http = httpx.AsyncClient(base_url=url, headers=HEADERS, **{"timeout": TIMEOUT_S, **options})

    async def send(self, call: ApiCall[T]) -> T:
        """Returns the result. Raises ClientError."""
        return await self._run(exchange(call, self._shared_credentials(), self._retries))

    async def run(self, calls: Calls[T]) -> T:
        """Sends the requests of a sign-in, such as ``UserLogin.sign_in``, and returns its result."""
        return await self._run(run_calls(calls, self._retries))

    async def changes(self, after: str = "") -> AsyncGenerator[Record]:
        """Yields the events of the change stream after this one, for ever. Keep the ``id`` of the last one.

        An event ``reset`` means that some were missed. A program that stops earlier uses ``contextlib.aclosing``.
        """
        steps = follow(self._shared_credentials(), after, self._retries)
        outcome: Outcome = None
        stream = AsyncEventStream(self._http, self._max_bytes)
        try:
            while True:
                step, outcome = steps.send(outcome), None
                if isinstance(step, Record):
                    yield step
                elif isinstance(step, ReadStream):
                    outcome = await stream.read()
                elif isinstance(step, OpenStream):
                    outcome = await stream.open(step)
                else:
                    outcome = await self._perform(step)
        finally:
            steps.close()
            await stream.close()

    def _shared_credentials(self) -> Credentials | None:
        if self.credentials is None:
            return None
        if self._sign_in is None:
            import anyio

            self._sign_in = SharedSignIn(anyio.Lock())
        return TaskCredentials(self.credentials, self._sign_in)

    async def _run(self, steps: Steps[T]) -> T:
        outcome = None
        try:
            while True:
                outcome = await self._perform(steps.send(outcome))
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            steps.close()  # whatever happened, the lock is free again

    async def _perform(self, step: Step) -> httpx.Response | httpx.TransportError | None:
        if isinstance(step, Wait):
            import anyio

            await anyio.sleep(step.seconds)
            return None
        if isinstance(step, Acquire):
            await step.lock.acquire()
            return None
        try:
            async with self._http.stream(step.request.method, step.request.path, **request_arguments(step)) as response:
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
