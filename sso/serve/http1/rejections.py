"""What is refused before the application hears of it, and how it is told."""

from collections.abc import Iterable
from http import HTTPStatus

import orjson


class RequestRejected(Exception):
    """The request cannot be served, and nothing that follows on its connection can be trusted."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class RejectionResponses:
    """The answers to what is refused: the same headers as every other answer, and the end of the connection."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        self._headers = _lines(headers)

    def answer(self, refused: RequestRejected, date: bytes) -> bytes:
        body = orjson.dumps({"status": "ERROR", "error": refused.reason})
        head = (
            f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{self._headers}connection: close\r\n"
            f"{_lines(refused.headers)}"
        )
        return b"".join((head.encode("ascii"), date, b"\r\n", body))


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name.lower()}: {value}\r\n" for name, value in headers)
