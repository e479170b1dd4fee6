"""Reads requests for hypercorn with the parsers of the built-in server, and renders them for h11."""

from collections.abc import Awaitable, Callable, Iterable

import trio

from sso.serve.http1.body import ChunkedBody, RequestBody
from sso.serve.http1.head import Header, RequestHead, head_end, read_head
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import LAST_CHUNK, chunk
from sso.serve.server_limits import ServerLimits

MAX_HEAD_READ = 16 * 1024
MAX_BODY_READ = 64 * 1024
# No subprotocol or extension is ever negotiated, and hypercorn fails if the offered names are not ASCII.
_REPLACED_IN_HANDSHAKE = (b"expect", b"connection", b"upgrade", b"sec-websocket-protocol", b"sec-websocket-extensions")
_HANDSHAKE_HEADERS = ((b"connection", b"Upgrade"), (b"upgrade", b"websocket"))
_REPLACED_IN_LAST_REQUEST = (b"expect", b"connection")
_LAST_REQUEST_HEADERS = ((b"connection", b"close"),)
_TOO_SLOW = "the request did not arrive in time"


class RequestReader:
    """Finds the requests in the bytes of one connection. ``receive`` returns b"" at the end of the stream."""

    def __init__(self, receive: Callable[[int], Awaitable[bytes]], limits: ServerLimits) -> None:
        self._receive = receive
        self._limits = limits
        self._buffer = b""

    @property
    def has_buffered(self) -> bool:
        return bool(self._buffer)

    async def wait_for_request(self) -> bool:
        """Waits for the first bytes of a request. Returns False if the client has left."""
        self._buffer = self._buffer.removeprefix(b"\r\n")  # some clients send it after a body (RFC 9112 section 2.2)
        if not self._buffer:
            self._buffer = (await self._receive(MAX_HEAD_READ)).removeprefix(b"\r\n")
        return bool(self._buffer) or await self._receive_more(MAX_HEAD_READ)

    async def read_head(self) -> RequestHead | None:
        """Returns the head of the request that has begun, or None if the client has left."""
        with trio.move_on_after(self._limits.head_s):
            return await self._read_head()
        raise RequestRejected(408, _TOO_SLOW)

    async def _read_head(self) -> RequestHead | None:
        searched = 0
        while (end := head_end(self._buffer, searched, self._limits.max_head_bytes)) < 0:
            searched = len(self._buffer)
            if not await self._receive_more(MAX_HEAD_READ):
                return None
        head_bytes, self._buffer = self._buffer[:end], self._buffer[end:]
        return read_head(head_bytes, self._limits.max_headers)

    async def read_body_piece(self, body: RequestBody, deadline: float) -> bytes:
        """Returns the next piece of a body, framed again for h11; b"" if the client has left."""
        data, self._buffer = body.feed(self._buffer)
        while not data and not body.done:
            with trio.move_on_at(deadline) as timeout:
                if not await self._receive_more(MAX_BODY_READ):
                    return b""
            if timeout.cancelled_caught:
                raise RequestRejected(408, _TOO_SLOW)
            data, self._buffer = body.feed(self._buffer)
        if not isinstance(body, ChunkedBody):
            return data
        return (chunk(data) if data else b"") + (LAST_CHUNK if body.done else b"")

    async def _receive_more(self, max_bytes: int) -> bool:
        data = await self._receive(max_bytes)
        self._buffer += data
        return bool(data)

    def take_buffered(self) -> bytes:
        """Returns and forgets the bytes that were received after the last request."""
        data, self._buffer = self._buffer, b""
        return data


def render_head(head: RequestHead) -> bytes:
    """Renders the head from its parsed form, so that h11 cannot interpret it differently.

    The Expect header is left out: the connection sends 100 Continue when the application reads the body.
    """
    target = head.path + b"?" + head.query if head.query else head.path
    lines = [b"%b: %b\r\n" % header for header in _headers(head)]
    return b"%b %b HTTP/%b\r\n%b\r\n" % (head.method.encode(), target, head.version.encode(), b"".join(lines))


def _headers(head: RequestHead) -> Iterable[Header]:
    replaced: tuple[bytes, ...] = (b"expect",)
    added: tuple[Header, ...] = ()
    if head.websocket:
        replaced, added = _REPLACED_IN_HANDSHAKE, _HANDSHAKE_HEADERS
    elif not head.keep_alive and head.version == "1.1":
        replaced, added = _REPLACED_IN_LAST_REQUEST, _LAST_REQUEST_HEADERS
    return (*(header for header in head.headers if header[0] not in replaced), *added)
