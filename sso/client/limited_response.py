"""A response of limited size: a server must not fill the memory of the program."""

import httpx

from sso.client.errors import ConnectionFailed

MAX_RESPONSE_BYTES = 64 << 20


class LimitedResponse:
    """Collects the body of a response. Raises ConnectionFailed if it is too large or compressed."""

    def __init__(self, response: httpx.Response, max_bytes: int) -> None:
        self._response = response
        self._max_bytes = max_bytes
        self._body = bytearray()
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise ConnectionFailed(f"{self._request}: the response is compressed, although that was not requested")
        if int(response.headers.get("Content-Length") or 0) > max_bytes:
            raise self._too_large()

    def add(self, piece: bytes) -> None:
        if len(self._body) + len(piece) > self._max_bytes:
            raise self._too_large()
        self._body += piece

    def complete(self) -> httpx.Response:
        return httpx.Response(self._response.status_code, headers=self._response.headers, content=bytes(self._body))

    def _too_large(self) -> ConnectionFailed:
        return ConnectionFailed(
            f"{self._request}: the response is larger than {self._max_bytes} bytes (max_response_bytes of the client)"
        )

    @property
    def _request(self) -> str:
        return f"{self._response.request.method} {self._response.request.url.path}"
