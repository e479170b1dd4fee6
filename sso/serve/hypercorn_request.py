"""Reads requests for hypercorn with the built-in server's head and body readers, and writes them as h11 reads them."""

from collections.abc import Awaitable, Callable, Iterable

import trio

from sso.serve.http1.body import ChunkedBody, RequestBody
from sso.serve.http1.head import Header, RequestHead, head_end, read_head
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import LAST_CHUNK, chunk
from sso.serve.server_limits import ServerLimits

MAX_HEAD_READ = 16 * 1024
MAX_BODY_READ = 64 * 1024
# No protocol or extension is ever chosen; hypercorn fails where the names of those offered are not ASCII.
_OF_HANDSHAKES = (b"expect", b"connection", b"upgrade", b"sec-websocket-protocol", b"sec-websocket-extensions")
_HANDSHAKE = ((b"connection", b"Upgrade"), (b"upgrade", b"websocket"))
_OF_LAST_REQUESTS = (b"expect", b"connection")
_LAST_REQUEST = ((b"connection", b"close"),)
_LATE = "the request did not come in time"


class RequestReader:
    """Finds requests in the bytes of one connection. ``receive`` returns nothing at the end of the stream."""

    def __init__(self, receive: Callable[[int], Awaitable[bytes]], limits: ServerLimits, read: bytes = b"") -> None:
        self._receive = receive
        self._limits = limits
        self._rest = read

    @property
    def has_rest(self) -> bool:
        return bool(self._rest)

    async def begins(self) -> bool:
        """Waits for the first bytes of a request. Returns False if the client has left."""
        self._rest = self._rest.removeprefix(b"\r\n")  # some end a body with it (RFC 9112 section 2.2)
        if not self._rest:
            self._rest = (await self._receive(MAX_HEAD_READ)).removeprefix(b"\r\n")
        return bool(self._rest) or await self._more(MAX_HEAD_READ)

    async def head(self) -> RequestHead | None:
        """Returns the head of the request that has begun, or None if the client has left."""
        with trio.move_on_after(self._limits.head_s):
            return await self._head()
        raise RequestRejected(408, _LATE)

    async def _head(self) -> RequestHead | None:
        searched = 0
        while (end := head_end(self._rest, searched, self._limits.max_head_bytes)) < 0:
            searched = len(self._rest)
            if not await self._more(MAX_HEAD_READ):
                return None
        raw, self._rest = self._rest[:end], self._rest[end:]
        return read_head(raw, self._limits.max_headers)

    async def body_piece(self, body: RequestBody, due: float) -> bytes:
        """Returns the next piece of a body, framed anew; nothing if the client has left."""
        data, self._rest = body.take(self._rest)
        while not data and not body.done:
            with trio.move_on_at(due) as deadline:
                if not await self._more(MAX_BODY_READ):
                    return b""
            if deadline.cancelled_caught:
                raise RequestRejected(408, _LATE)
            data, self._rest = body.take(self._rest)
        if not isinstance(body, ChunkedBody):
            return data
        return (chunk(data) if data else b"") + (LAST_CHUNK if body.done else b"")

    async def _more(self, most: int) -> bool:
        data = await self._receive(most)
        self._rest += data
        return bool(data)

    def take_rest(self) -> bytes:
        """Returns what was received after the last request."""
        rest, self._rest = self._rest, b""
        return rest


def request_head(head: RequestHead) -> bytes:
    """The head as it was understood, so that nothing in it can mean something else to h11.

    Expect is left out: the connection answers 100 when the body is wanted.
    """
    target = head.path + b"?" + head.query if head.query else head.path
    lines = [b"%b: %b\r\n" % header for header in _headers(head)]
    return b"%b %b HTTP/%b\r\n%b\r\n" % (head.method.encode(), target, head.version.encode(), b"".join(lines))


def _headers(head: RequestHead) -> Iterable[Header]:
    left_out: tuple[bytes, ...] = (b"expect",)
    instead: tuple[Header, ...] = ()
    if head.websocket:
        left_out, instead = _OF_HANDSHAKES, _HANDSHAKE
    elif not head.keep_alive and head.version == "1.1":
        left_out, instead = _OF_LAST_REQUESTS, _LAST_REQUEST
    return (*(header for header in head.headers if header[0] not in left_out), *instead)
