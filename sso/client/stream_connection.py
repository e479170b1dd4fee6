"""The connection of the change stream, for both kinds of clients."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from sso.client.event_stream import SILENCE_S, OpenStream, is_stream
from sso.client.exchange import Send
from sso.client.limited_response import LimitedResponse


def request_arguments(step: Send) -> dict[str, Any]:
    """Returns the arguments of a request of httpx."""
    call = step.request
    arguments: dict[str, Any] = {"params": dict(call.query) or None, "headers": step.headers}
    if call.form is not None:
        arguments["data"] = dict(call.form)
    elif call.json is not None:
        arguments["json"] = call.json
    if call.timeout_s is not None:
        arguments["timeout"] = call.timeout_s
    return arguments


class EventStream:
    """At most one response, whose bytes are read as they come."""

    def __init__(self, http: httpx.Client, max_bytes: int) -> None:
        self._http, self._max_bytes = http, max_bytes
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def open(self, step: OpenStream) -> httpx.Response | httpx.TransportError:
        """Returns a stream, or another response with its body."""
        self.close()
        try:
            self._response = self._http.send(_request(self._http, step), stream=True)
            self._pieces = self._response.iter_raw()
            if is_stream(self._response):
                return self._response
            received = LimitedResponse(self._response, self._max_bytes)
            for piece in self._pieces:
                received.add(piece)
        except httpx.TransportError as error:
            return error
        return received.complete()

    def read(self) -> bytes:
        try:
            return next(self._pieces, b"")
        except httpx.TransportError:
            return b""

    def close(self) -> None:
        if self._response is not None:
            self._response.close()


class AsyncEventStream:
    """The same for asyncio and Trio."""

    def __init__(self, http: httpx.AsyncClient, max_bytes: int) -> None:
        self._http, self._max_bytes = http, max_bytes
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def open(self, step: OpenStream) -> httpx.Response | httpx.TransportError:
        await self.close()
        try:
            self._response = await self._http.send(_request(self._http, step), stream=True)
            self._pieces = self._response.aiter_raw()
            if is_stream(self._response):
                return self._response
            received = LimitedResponse(self._response, self._max_bytes)
            async for piece in self._pieces:
                received.add(piece)
        except httpx.TransportError as error:
            return error
        return received.complete()

    async def read(self) -> bytes:
        assert self._pieces is not None
        try:
            return await anext(self._pieces, b"")
        except httpx.TransportError:
            return b""

    async def close(self) -> None:
        if self._response is not None:
            await self._response.aclose()


def _request(http: httpx.Client | httpx.AsyncClient, step: OpenStream) -> httpx.Request:
    timeout = httpx.Timeout(SILENCE_S)
    return http.build_request(step.request.method, step.request.path, **{**request_arguments(step), "timeout": timeout})
