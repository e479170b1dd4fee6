"""Requests that are rejected before the application sees them, and the responses to them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus

import orjson

from sso.telemetry.counters import THROTTLED_REQUESTS

_NOT_SIMPLE = (b"transfer-encoding", b"connection", b"upgrade", b"expect")
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,5})[ \t]*(?=\r\n)")
CLOSE = "connection: close\r\n"


class RequestRejected(Exception):
    """The request cannot be served. Its connection is closed, since the bytes that follow cannot be trusted."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


def overloaded() -> RequestRejected:
    """Returns the rejection of a request that would wait for too long. The client may come back, to any worker."""
    THROTTLED_REQUESTS.add("overload")
    return RequestRejected(503, "the service is not available for a moment, try again", (("Retry-After", "1"),))


def simple_body_length(head: bytes) -> int | None:
    """Returns the length of the body if the connection can go on after a refusal that has not looked at the request.

    Returns None for everything that needs a closer look, such as a body without a length.
    """
    line, _, headers = head.lower().partition(b"\r\n")
    is_usual = line.startswith((b"get /", b"post /")) and line.endswith(b" http/1.1")
    if not is_usual or any(name in headers for name in _NOT_SIMPLE):
        return None
    lengths = _CONTENT_LENGTH.findall(b"\r\n" + headers)
    if headers.count(b"content-length") != len(lengths) or len(lengths) > 1:
        return None
    return int(lengths[0]) if lengths else 0


class RejectionResponses:
    """Builds the responses to rejected requests, with the headers that every other response has."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        self._headers = _header_lines(headers)

    def render(self, rejection: RequestRejected, date_header: bytes, *, closes: bool = True) -> bytes:
        own_headers = (CLOSE if closes else "") + _header_lines(rejection.headers)
        head, body = _response(rejection.status, rejection.reason, self._headers + own_headers)
        return b"".join((head, date_header, b"\r\n", body))


@lru_cache(16)
def _response(status: int, reason: str, headers: str) -> tuple[bytes, bytes]:
    """Returns the head up to the last headers, and the body. An overload needs thousands of the same in a second."""
    body = orjson.dumps({"status": "ERROR", "error": reason})
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}"
    )
    return head.encode("ascii"), body


def _header_lines(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name.lower()}: {value}\r\n" for name, value in headers)
