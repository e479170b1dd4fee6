"""Writes the response to one request: from ASGI messages, or in one call, to bytes on the connection."""

from collections.abc import Awaitable, Callable
from typing import Any

from sso.serve.acknowledgement import ResponseBytes
from sso.serve.http1.connection_interface import ConnectionInterface
from sso.serve.http1.disconnects import has_disconnected
from sso.serve.http1.head import RequestHead
from sso.serve.http1.response import (
    CHUNKED,
    CLOSE,
    KEEP_ALIVE,
    LAST_CHUNK,
    InvalidResponse,
    ResponseHead,
    chunk,
    has_body,
    response_head,
)
from sso.web.client_connection import RawHeaders, SharedHeaders


class ResponseWriter:
    __slots__ = (
        "_bytes", "_chunked", "_connection", "_head", "_keep_alive", "_method", "_remaining", "_status", "_version",
        "_wants_keep_alive", "delivered", "finished", "on_response_end",
    )  # fmt: skip

    def __init__(self, connection: ConnectionInterface, request: RequestHead) -> None:
        self._connection = connection
        self._method = request.method
        self._version = request.version
        self._wants_keep_alive = request.keep_alive
        self._head: ResponseHead | None = None
        self._status = 0
        self._keep_alive = False
        self._chunked = False
        self._remaining: int | None = None  # bytes of the announced content length that were not written yet
        self.delivered = False  # the client has, or will get, everything that it waits for
        self.finished = False
        self.on_response_end: Callable[[bool], Awaitable[None]] | None = None
        self._bytes: ResponseBytes | None = None  # only for a response whose end is reported

    async def send(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "http.response.body" if self._head is not None and not self.finished:
                data = message.get("body", b"")
                if message.get("more_body"):
                    await self._stream(data)
                else:
                    await self._finish(data)
            case "http.response.start" if self._head is None:
                self._status = message["status"]
                self._head = response_head(self._status, message.get("headers", ()))
            case kind:
                raise InvalidResponse(f"{kind} is not expected now")

    def respond(self, status: int, headers: RawHeaders, data: bytes, shared: SharedHeaders = ()) -> Awaitable[None]:
        """Writes the whole response without ASGI messages."""
        if self._head is not None:
            raise InvalidResponse("the response was already started")
        self._status = status
        self._head = response_head(status, headers, shared)
        return self._finish(data)

    async def _finish(self, data: bytes) -> None:
        if self._connection.response_started:
            await self._write(self._frame(data) + (LAST_CHUNK if self._chunked else b""))
        else:
            await self._write(self._render_head(len(data)) + self._frame(data))
        if self._remaining:
            raise InvalidResponse("the body is shorter than the content length")
        self.delivered = self.finished = True

    async def _stream(self, data: bytes) -> None:
        head = b"" if self._connection.response_started else self._render_head(None)
        await self._write(head + self._frame(data))
        self.delivered = self._remaining == 0

    def _render_head(self, body_length: int | None) -> bytes:
        """Returns the head with its framing headers; ``body_length`` is None if the body is streamed."""
        head, context = self._head, self._connection.context
        assert head is not None
        body = has_body(self._method, self._status)
        length = head.content_length
        lines = [head.lines]
        self._keep_alive = (
            self._request_is_read() and self._wants_keep_alive and not head.close and not context.draining
        )
        if body and length is None:
            if body_length is not None:
                length = body_length
                lines.append(b"content-length: %d\r\n" % body_length)
            elif self._version == "1.1":
                self._chunked = True
                lines.append(CHUNKED)
            else:
                self._keep_alive = False  # the end of the connection marks the end of the body
        if body and body_length is not None and length != body_length:
            raise InvalidResponse("the content length is not the length of the body")
        self._remaining = length if body else 0
        if not self._keep_alive:
            lines.append(CLOSE)
        elif self._version == "1.0":
            lines.append(KEEP_ALIVE)
        lines += (context.clock.date_header, b"\r\n")
        return b"".join(lines)

    def _frame(self, data: bytes) -> bytes:
        if self._chunked:
            return chunk(data) if data else b""
        if self._remaining is None:
            return data
        if not has_body(self._method, self._status):
            return b""
        self._remaining -= len(data)
        if self._remaining < 0:
            raise InvalidResponse("the body is longer than the content length")
        return data

    async def _write(self, data: bytes) -> None:
        connection = self._connection
        if self.on_response_end is not None:
            if not connection.response_started and has_disconnected(connection.sock):
                await connection.abort()
            if self._bytes is None:
                self._bytes = ResponseBytes(connection.sock)
            self._bytes.add(len(data))
        connection.response_started = True
        if data:
            await connection.write(data)

    def _request_is_read(self) -> bool:
        """Returns whether the body was consumed, so that the next request can follow."""
        raise NotImplementedError
