"""The program with either HTTP server: the same pages, data, refusals and end."""

import signal
import socket
from collections.abc import Iterator

import pytest

from tests.kit.browser import fresh_browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.raw_http import SERVERS
from tests.kit.server import QUICK, Server, running


@pytest.fixture(scope="module", params=SERVERS)
def either(
    request: pytest.FixtureRequest, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_HTTP": request.param}
    with running(tmp_path_factory.mktemp("either"), **settings) as server:
        yield server


def test_a_person_signs_in(either: Server) -> None:
    with fresh_browser(either, new_user(either)) as browser:
        browser.open_account()
        assert browser.is_signed_in


def test_a_program_signs_in(either: Server) -> None:
    login = new_user(either)
    with either.client() as client:
        for number in range(5):
            body = {"login": login, "password": PASSWORD if number % 2 else "x", "factor": "x"}
            assert client.post("/proxy/api/login", json=body).status_code == (200 if number % 2 else 401)
        tag = client.get("/proxy/oauth/keys").headers["ETag"]
        assert client.get("/proxy/oauth/keys", headers={"If-None-Match": tag}).status_code == 304
        assert client.get("/static/sso.css").headers["Content-Type"].startswith("text/css")
        assert client.post("/proxy/api/login", content=b"a" * 300_000).status_code == 413
        assert client.request("X", "/login").status_code == 405


def test_it_ends_when_it_is_told_to(either: Server) -> None:
    """The last of this module: a connection that does nothing does not keep it."""
    host, port = either.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as idle:
        assert either.stop(signal.SIGTERM) == 0
        assert idle.recv(1) == b""
