"""The head of an answer, and how its body is framed."""

from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from sso.web.client_connection import RawHeaders, SharedHeaders

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
CHUNKED = b"transfer-encoding: chunked\r\n"
CLOSE = b"connection: close\r\n"
KEEP = b"connection: keep-alive\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

# Of these nearly all answers have the same few: they are put together once.
_SAME = frozenset({
    b"cache-control", b"content-type", b"cross-origin-opener-policy",
    b"cross-origin-resource-policy", b"permissions-policy", b"pragma", b"referrer-policy", b"strict-transport-security",
    b"vary", b"x-content-type-options", b"x-frame-options",
})  # fmt: skip
MAX_SAME = 256
MAX_USUAL = 64
_same: dict[tuple[bytes, bytes], bytes] = {}


class InvalidResponse(Exception):
    """The application has answered with something that cannot be said."""


class ResponseHead(NamedTuple):
    lines: bytes  # without the empty one at the end
    length: int | None  # as the application said
    close: bool  # the application wants the connection to end


def response_head(status: int, headers: RawHeaders, usual: SharedHeaders = ()) -> ResponseHead:
    lines, length, close = _usual_head(usual)
    own, own_length, own_close = _head(headers)
    begin = _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return ResponseHead(begin + lines + own, length if own_length is None else own_length, close or own_close)


def _head(headers: Iterable[tuple[bytes, bytes]]) -> ResponseHead:
    lines = []
    length, close = None, False
    for pair in headers:
        if line := _same.get(pair):
            lines.append(line)
            continue
        name, value = pair
        match name:
            case b"content-length":
                length = int(value)
            case b"connection":
                close = b"close" in value.lower()
                continue
            case b"transfer-encoding":
                continue  # how it is sent is not the application's to say
        lines.append(_line(name, value))
    return ResponseHead(b"".join(lines), length, close)


_usual_head = lru_cache(MAX_USUAL)(_head)


def _line(name: bytes, value: bytes) -> bytes:
    line = b"%b: %b\r\n" % (name, value)
    if line.count(b"\n") != 1 or line.count(b"\r") != 1:
        raise InvalidResponse("a header holds a line end")
    if name in _SAME and len(_same) < MAX_SAME:
        _same[name, value] = line
    return line


def has_body(method: str, status: int) -> bool:
    return method != "HEAD" and status >= 200 and status not in (204, 304)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
