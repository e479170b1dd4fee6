"""The stored sign-in with a browser, after its tokens were renewed."""

import base64
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

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


def renews(sent: list[str]) -> Callable[[httpx.Request], httpx.Response]:
    """Returns a service that replaces the refresh token, and revokes the grant if a replaced one is sent again."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/proxy/oauth/token":
            token = parse_qs(request.content.decode())["refresh_token"][0]
            if token in sent:
                return _streamed(400, status="ERROR", error="invalid_grant")
            sent.append(token)
            return _streamed(200, access_token="a", refresh_token=f"{token}+")
        if request.url.path == "/proxy/oauth/exchangeToken":
            return _streamed(200, status="OK", token=_jwt(f"{sent[-1]}+"))
        return _streamed(200, status="OK")

    return answer


def renew(credentials: Credentials, answer: Callable[[httpx.Request], httpx.Response]) -> dict[str, str]:
    """Returns the headers after the service has refused the present ones."""
    with SsoClient(URL, retries=0, transport=httpx.MockTransport(answer)) as client:
        credentials.forget(client.run(credentials.headers()))
        return client.run(credentials.headers())


def test_command_does_not_store_its_tokens_in_a_later_sign_in(logins: Logins) -> None:
    sent: list[str] = []
    credentials = sign_in(logins, renews(sent))
    other = {**LOGIN, "refresh_token": "of bob", "idempotency_key": "k2", "factor": "of bob"}
    logins.add(URL, other)
    assert renew(credentials, renews(sent))["Factor"] == "f"
    assert sent == ["r1", "r1+"]
    assert logins.find(URL) == other
    logins.remove(URL)
    renew(credentials, renews(sent))
    assert logins.get(URL) is None


def test_commands_at_the_same_time_renew_the_newest_token(logins: Logins) -> None:
    sent: list[str] = []
    commands = [sign_in(logins, renews(sent)) for _ in range(2)]
    assert sent == ["r1"]
    first = renew(commands[0], renews(sent))
    assert renew(commands[1], renews(sent)) == first, "it takes the token that the other one has got"
    assert renew(commands[1], renews(sent)) != first
    assert sent == ["r1", "r1+", "r1++"]
    assert logins.find(URL)["refresh_token"] == "r1+++"


def _jwt(number: str) -> str:
    claims = json.dumps({"iat": 0, "exp": 3600, "jti": number})
    return f"e.{base64.urlsafe_b64encode(claims.encode()).decode()}.s"


def _streamed(code: int, **body: object) -> httpx.Response:
    return httpx.Response(code, stream=httpx.ByteStream(json.dumps(body).encode()))
