"""The service with each of its HTTP servers: pages, API, refused requests and shutdown."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.kit.browser import fresh_browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running


@pytest.fixture(scope="module", params=["builtin", "hypercorn"])
def server(
    request: pytest.FixtureRequest, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_HTTP": request.param, "SSO_WORKERS": "2"}
    with running(tmp_path_factory.mktemp("server"), **settings) as server:
        yield server


def test_user_signs_in_with_a_browser(server: Server) -> None:
    with fresh_browser(server, new_user(server)) as browser:
        browser.open_account()
        assert browser.is_signed_in


def test_client_uses_the_api(server: Server) -> None:
    login = new_user(server)
    with server.client() as client:
        for number in range(5):
            body = {"login": login, "password": PASSWORD if number % 2 else "x", "factor": "x"}
            assert client.post("/proxy/api/login", json=body).status_code == (200 if number % 2 else 401)
        tag = client.get("/proxy/oauth/keys").headers["ETag"]
        assert client.get("/proxy/oauth/keys", headers={"If-None-Match": tag}).status_code == 304
        assert client.get("/static/sso.css").headers["Content-Type"].startswith("text/css")
        too_long = client.post("/proxy/api/login", content=b"a" * 300_000)
        assert (too_long.status_code, too_long.headers["Connection"]) == (413, "close")
        assert client.request("X", "/login").status_code == 405


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"


def exchange(server: Server, sent: bytes) -> bytes:
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        raw.sendall(sent)
        received = b""
        while data := raw.recv(65536):
            received += data
        return received


# Hypercorn reads requests by its own rules.
only_builtin = pytest.mark.parametrize("server", ["builtin"], indirect=True)


@only_builtin
def test_http_2_without_tls_is_not_served(server: Server) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    for _ in range(4):  # on both workers
        assert exchange(server, PREFACE).startswith(b"HTTP/1.1 400 ")
        answers = exchange(server, request + UPGRADE + b"\r\n" + PREFACE).split(b"HTTP/1.1 ")[1:]
        assert [answer[:4] for answer in answers] == [b"200 ", b"400 "]


@only_builtin
def test_ambiguous_request_is_refused_and_ends_the_connection(server: Server) -> None:
    head = b"POST /proxy/api/login HTTP/1.1\r\nHost: localhost\r\n"
    following = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for framing in (
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding:\r\n chunked\r\n",
        b"Content-Length: 5\n",
        b"A: b\r\n" * 200,
    ):
        answers = exchange(server, head + framing + b"\r\n" + following).split(b"HTTP/1.1 ")[1:]
        assert [answer[:4] for answer in answers] == [b"431 " if b"A:" in framing else b"400 "]


def test_repeated_sigterm_stops_the_server_despite_an_idle_connection(server: Server) -> None:
    host, port = server.base_url.removeprefix("http://").split(":")
    assert server.process is not None
    with socket.create_connection((host, int(port))) as idle:
        while server.process.poll() is None:
            for pid in (server.process.pid, *server.workers()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.005)
        code = server.stop()
        server.start()  # for the other tests
        assert code == 0
        assert idle.recv(1) == b""
