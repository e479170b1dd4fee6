"""Renders the head of a response, and the framing of its body."""

from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from sso.web.client_connection import RawHeaders, SharedHeaders

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
CHUNKED = b"transfer-encoding: chunked\r\n"
CLOSE = b"connection: close\r\n"
KEEP_ALIVE = b"connection: keep-alive\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

# Headers with the same few values in nearly all responses: their lines are rendered once.
_CACHEABLE = frozenset({
    b"cache-control", b"content-type", b"cross-origin-opener-policy",
    b"cross-origin-resource-policy", b"permissions-policy", b"pragma", b"referrer-policy", b"strict-transport-security",
    b"vary", b"x-content-type-options", b"x-frame-options",
})  # fmt: skip
MAX_CACHED_LINES = 256
MAX_CACHED_HEADS = 64
_cached_lines: dict[tuple[bytes, bytes], bytes] = {}


class InvalidResponse(Exception):
    """The application sent a response that cannot be expressed in HTTP."""


class ResponseHead(NamedTuple):
    lines: bytes  # without the empty line at the end
    content_length: int | None  # the header of the application, if it set one
    close: bool  # the application asked to close the connection


def response_head(status: int, headers: RawHeaders, shared: SharedHeaders = ()) -> ResponseHead:
    lines, content_length, close = _shared_header_lines(shared)
    own_lines, own_content_length, own_close = _header_lines(headers)
    status_line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return ResponseHead(
        status_line + lines + own_lines,
        content_length if own_content_length is None else own_content_length,
        close or own_close,
    )


def _header_lines(headers: Iterable[tuple[bytes, bytes]]) -> ResponseHead:
    lines = []
    content_length, close = None, False
    for pair in headers:
        if line := _cached_lines.get(pair):
            lines.append(line)
            continue
        name, value = pair
        match name:
            case b"content-length":
                content_length = int(value)
            case b"connection":
                close = b"close" in value.lower()
                continue
            case b"transfer-encoding":
                continue  # the server decides about the framing
        lines.append(_header_line(name, value))
    return ResponseHead(b"".join(lines), content_length, close)


_shared_header_lines = lru_cache(MAX_CACHED_HEADS)(_header_lines)


def _header_line(name: bytes, value: bytes) -> bytes:
    line = b"%b: %b\r\n" % (name, value)
    if line.count(b"\n") != 1 or line.count(b"\r") != 1:
        raise InvalidResponse("a header contains a line break")
    if name in _CACHEABLE and len(_cached_lines) < MAX_CACHED_LINES:
        _cached_lines[name, value] = line
    return line


def has_body(method: str, status: int) -> bool:
    return method != "HEAD" and status >= 200 and status not in (204, 304)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
