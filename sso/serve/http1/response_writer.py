"""The answer to a request, from the application's messages to the bytes on the wire."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from sso.serve.http1.disconnects import has_left
from sso.serve.http1.head import RequestHead
from sso.serve.http1.response import (
    CHUNKED,
    CLOSE,
    KEEP,
    LAST_CHUNK,
    InvalidResponse,
    ResponseHead,
    chunk,
    has_body,
    response_head,
)
from sso.web.client_connection import RawHeaders, SharedHeaders

if TYPE_CHECKING:
    from sso.serve.http1.connection import Connection


class ResponseWriter:
    __slots__ = (
        "_chunked", "_connection", "_head", "_keep", "_keep_alive", "_left", "_method", "_status", "_version",
        "finished", "on_undelivered", "written",
    )  # fmt: skip

    def __init__(self, connection: "Connection", asked: RequestHead) -> None:
        self._connection = connection
        self._method = asked.method
        self._version = asked.version
        self._keep_alive = asked.keep_alive
        self._head: ResponseHead | None = None
        self._status = 0
        self._keep = False
        self._chunked = False
        self._left: int | None = None  # of the length that the answer has announced
        self.written = False  # as far as the client is concerned
        self.finished = False
        self.on_undelivered: Callable[[], Awaitable[None]] | None = None

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

    def answer(self, status: int, headers: RawHeaders, data: bytes, usual: SharedHeaders = ()) -> Awaitable[None]:
        """All of it, without messages."""
        if self._head is not None:
            raise InvalidResponse("there is an answer already")
        self._status = status
        self._head = response_head(status, headers, usual)
        return self._finish(data)

    async def _finish(self, data: bytes) -> None:
        if self._connection.begun:
            await self._write(self._framed(data) + (LAST_CHUNK if self._chunked else b""))
        else:
            await self._write(self._begun(data, len(data)) + self._framed(data))
        if self._left:
            raise InvalidResponse("the answer is shorter than it says")
        self.written = self.finished = True

    async def _stream(self, data: bytes) -> None:
        begin = b"" if self._connection.begun else self._begun(data, None)
        await self._write(begin + self._framed(data))
        self.written = self._left == 0  # the client has all that it waits for

    def _begun(self, data: bytes, whole: int | None) -> bytes:
        """The head, now that it is known whether the answer is whole: if so, its length."""
        head = self._head
        assert head is not None
        body = has_body(self._method, self._status)
        length = head.length
        lines = [head.lines]
        self._keep = self._all_read() and self._keep_alive and not head.close and not self._connection.lane.draining
        if body and length is None:
            if whole is not None:
                length = whole
                lines.append(b"content-length: %d\r\n" % whole)
            elif self._version == "1.1":
                self._chunked = True
                lines.append(CHUNKED)
            else:
                self._keep = False  # its end is the end of the connection
        if body and whole is not None and length != whole:
            raise InvalidResponse("the answer is not as long as it says")
        self._left = length if body else 0
        if not self._keep:
            lines.append(CLOSE)
        elif self._version == "1.0":
            lines.append(KEEP)
        lines += (self._connection.lane.clock.date, b"\r\n")
        return b"".join(lines)

    def _framed(self, data: bytes) -> bytes:
        if self._chunked:
            return chunk(data) if data else b""
        if self._left is None:
            return data
        if not has_body(self._method, self._status):
            return b""
        self._left -= len(data)
        if self._left < 0:
            raise InvalidResponse("the answer is longer than it says")
        return data

    async def _write(self, data: bytes) -> None:
        connection = self._connection
        if self.on_undelivered is not None and not connection.begun and has_left(connection.sock):
            await connection.ended()
        connection.begun = True
        if data:
            await connection.write(data)

    def _all_read(self) -> bool:
        """Whether the next request can be found."""
        raise NotImplementedError
