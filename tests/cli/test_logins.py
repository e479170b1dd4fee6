"""The stored sign-in with a browser, after its tokens were renewed."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest

from sso.cli.logins import Logins
from sso.cli.records import server
from sso.client import ConnectionFailed, RequestRefused, SsoClient, users
from sso.client.credentials import Credentials

URL = "https://sso.example.com"
LOGIN = {"kind": "browser", "client_id": "sso-cli", "refresh_token": "r1", "factor": "f", "jwt": "j", "jwt_ends": 1}


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    logins = Logins(tmp_path)
    logins.add(URL, {**LOGIN, "idempotency_key": "k1"})
    return logins


def sign_in(logins: Logins, answer: Callable[[httpx.Request], httpx.Response]) -> Credentials:
    """Renews the tokens, if it must, at a service that answers like this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "SsoClient", partial(SsoClient, retries=0, transport=httpx.MockTransport(answer)))
        return server._signed_in(URL, logins)


def exchange_fails(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/proxy/oauth/exchangeToken":
        return _streamed(503, status="ERROR", error="away")
    return _streamed(200, access_token="a", refresh_token="r2")


def test_rotated_refresh_token_is_stored_although_the_exchange_fails(logins: Logins) -> None:
    with pytest.raises(RequestRefused):
        sign_in(logins, exchange_fails)
    stored = logins.find(URL)
    assert stored["refresh_token"] == "r2"
    assert stored["idempotency_key"] not in ("", "k1")  # every refresh has its own


def test_refresh_whose_answer_was_lost_is_repeated_with_its_idempotency_key(logins: Logins) -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        raise httpx.ReadError("lost")

    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            sign_in(logins, answer)
    assert keys == ["k1", "k1"]
    assert logins.find(URL)["refresh_token"] == "r1"


def test_refresh_token_that_is_rotated_while_a_command_runs_is_stored(logins: Logins) -> None:
    logins.update(URL, jwt_ends=int(time.time()) + 3600)
    credentials = sign_in(logins, exchange_fails)  # sends nothing
    assert logins.find(URL)["refresh_token"] == "r1"
    with SsoClient(URL, credentials, retries=0, transport=httpx.MockTransport(exchange_fails)) as client:
        credentials.forget({"Authorization": "Bearer j"})
        with pytest.raises(RequestRefused):
            client.send(users.get("1"))
    assert logins.find(URL)["refresh_token"] == "r2"


def _streamed(code: int, **body: object) -> httpx.Response:
    return httpx.Response(code, stream=httpx.ByteStream(json.dumps(body).encode()))
