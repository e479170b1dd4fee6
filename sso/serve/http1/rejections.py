"""Requests that are rejected before the application sees them, and the responses to them."""

from collections.abc import Iterable
from http import HTTPStatus

import orjson


class RequestRejected(Exception):
    """The request cannot be served. Its connection is closed, since the bytes that follow cannot be trusted."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class RejectionResponses:
    """Builds the responses to rejected requests, with the headers that every other response has."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        self._headers = _header_lines(headers)

    def render(self, rejection: RequestRejected, date_header: bytes) -> bytes:
        body = orjson.dumps({"status": "ERROR", "error": rejection.reason})
        head = (
            f"HTTP/1.1 {rejection.status} {HTTPStatus(rejection.status).phrase}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{self._headers}connection: close\r\n"
            f"{_header_lines(rejection.headers)}"
        )
        return b"".join((head.encode("ascii"), date_header, b"\r\n", body))


def _header_lines(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name.lower()}: {value}\r\n" for name, value in headers)
