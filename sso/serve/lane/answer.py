"""The head of an answer, and how its body is framed."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
CHUNKED = b"transfer-encoding: chunked\r\n"
CLOSE = b"connection: close\r\n"
KEEP = b"connection: keep-alive\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class BadAnswer(Exception):
    """The application has answered with something that cannot be said."""


class AnswerHead(NamedTuple):
    lines: bytes  # without the empty one at the end
    length: int | None  # as the application said
    close: bool  # the application wants the connection to end


def answer_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> AnswerHead:
    lines = [_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
    length, close = None, False
    for name, value in headers:
        match name:
            case b"content-length":
                length = int(value)
            case b"connection":
                close = b"close" in value.lower()
                continue
            case b"transfer-encoding":
                continue  # how it is sent is not the application's to say
        lines.append(b"%b: %b\r\n" % (name, value))
    head = b"".join(lines)
    if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
        raise BadAnswer("a header holds a line end")
    return AnswerHead(head, length, close)


def has_body(method: str, status: int) -> bool:
    return method != "HEAD" and status >= 200 and status not in (204, 304)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
