"""A server cannot fill the memory of a program, and an answer of another kind is an error of the client."""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
import trio

from sso.client import AsyncSsoClient, ConnectionFailed, ServiceClient, ServiceToken, SsoClient, users

LIMIT = 100_000
CHUNK = b"a" * 10_000


class Hostile(BaseHTTPRequestHandler):
    headers_sent: ClassVar[dict[str, str]] = {}
    chunks_sent: ClassVar[int] = 0

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in self.headers_sent.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            while type(self).chunks_sent < 1000:
                self.wfile.write(CHUNK)
                type(self).chunks_sent += 1
        except OSError:  # the client has closed the connection
            pass

    def do_POST(self) -> None:
        body = json.dumps({"token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Hostile.chunks_sent = 0
    with HTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def raises(text: str) -> AbstractContextManager[object]:
    return pytest.raises(ConnectionFailed, match=text)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "larger than 100000 bytes"),
        ({"Content-Length": "10000000"}, "larger than 100000 bytes"),
        ({"Content-Encoding": "gzip"}, "compressed"),
    ],
)
def test_endless_response_is_not_read(url: str, headers: dict[str, str], reason: str) -> None:
    Hostile.headers_sent = headers
    expected = rf"^GET /api/admin/users/1: .*{reason}"
    with SsoClient(url, ServiceToken("t"), max_response_bytes=LIMIT) as client, raises(expected):
        client.send(users.get("1"))
    assert Hostile.chunks_sent < 1000


def test_endless_response_is_not_read_by_the_asynchronous_client(url: str) -> None:
    async def read() -> None:
        async with AsyncSsoClient(url, ServiceToken("t"), max_response_bytes=LIMIT) as client:
            await client.send(users.get("1"))

    Hostile.headers_sent = {}
    with raises("larger than 100000 bytes"):
        trio.run(read)


def test_token_response_without_a_token_is_an_error_of_the_client(url: str) -> None:
    with SsoClient(url, ServiceClient("a", "b")) as client, raises("not as expected: KeyError"):
        client.send(users.get("1"))
