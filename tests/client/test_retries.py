"""Retries of the client, against a small server that answers as it is told."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from sso.client import (
    ApiCall,
    AsyncSsoClient,
    BrowserLogin,
    ConnectionFailed,
    RequestRefused,
    ServiceClient,
    ServiceToken,
    SessionToken,
    SignInRequired,
    SsoClient,
    TooManyRequests,
    UserLogin,
    clients,
    users,
)
from sso.client.credentials import RenewedToken
from sso.client.event_stream import follow
from sso.client.exchange import Wait
from sso.oauth.clients.revocation_store import REVOCATION_S
from tests.kit.ports import free_port

CLAIMS = base64.urlsafe_b64encode(b'{"exp": 9999999999, "iat": 1}').decode().rstrip("=")
JWT = f"e30.{CLAIMS}."


class ScriptedServer:
    """Answers with the statuses of a list, then with 200. A status of 0 closes the connection without an answer."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                outer.requests.append(self.command)
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status = outer.statuses.pop(0) if outer.statuses else 200
                if not status:
                    return
                body = b'{"status": "OK", "data": {}}' if status == 200 else b'{"status": "ERROR", "error": "no"}'
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if status in (429, 503):
                    self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def test_429_is_retried_for_every_method(scripted: ScriptedServer) -> None:
    scripted.statuses = [429, 429]
    with SsoClient(scripted.url, ServiceToken("t")) as client:
        client.send(users.create({"login": "a@example.com"}))
    assert scripted.requests == ["POST"] * 3


def test_429_is_raised_after_the_retries(scripted: ScriptedServer) -> None:
    scripted.statuses = [429] * 9
    with SsoClient(scripted.url, ServiceToken("t"), retries=2) as client, pytest.raises(TooManyRequests):
        client.send(users.get("1"))
    assert len(scripted.requests) == 3


def test_lost_connection_is_retried_only_if_the_request_may_be_repeated(scripted: ScriptedServer) -> None:
    with SsoClient(scripted.url, ServiceToken("t")) as client:
        scripted.statuses = [0]
        client.send(users.get("1"))
        assert scripted.requests == ["GET", "GET"]
        scripted.statuses = [0]
        with pytest.raises(ConnectionFailed):
            client.send(users.create({"login": "a@example.com"}))
        assert scripted.requests == ["GET", "GET", "POST"]


def test_503_is_retried_only_if_the_request_may_be_repeated(scripted: ScriptedServer) -> None:
    with SsoClient(scripted.url, ServiceToken("t")) as client:
        scripted.statuses = [503]
        client.send(users.get("1"))
        scripted.statuses = [503]
        with pytest.raises(RequestRefused):
            client.send(users.update("1", fields={"nick": "A"}))
    assert scripted.requests == ["GET", "GET", "PATCH"]


def test_token_that_stays_refused_is_renewed_once(scripted: ScriptedServer) -> None:
    scripted.statuses = [401] * 9
    session = SessionToken("t", "f", jwt=RenewedToken("jwt", time.monotonic() + 3600))
    with SsoClient(scripted.url, session) as client, pytest.raises(SignInRequired):
        client.send(users.get("1"))
    assert scripted.requests == ["GET", "POST"]  # the login, which is refused as well


@pytest.mark.parametrize(("otp", "sign_ins"), [(None, 2), ("123456", 1)])
def test_user_signs_in_again_unless_the_code_was_used(otp: str | None, sign_ins: int) -> None:
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        fields = json.loads(request.read())
        sent.append("password" if "password" in fields else "token")
        return _streamed(200, token="t", jwt=JWT) if "password" in fields else _streamed(401, status="ERROR")

    login = UserLogin("ann@example.com", "secret", otp)
    with SsoClient("http://sso", transport=httpx.MockTransport(answer)) as client:
        login.forget(client.run(login.headers()))
        with pytest.raises(SignInRequired) if sign_ins == 1 else nullcontext():
            client.run(login.headers())
    assert sent == ["password", "token", "password"][: sign_ins + 1]


@pytest.mark.parametrize(
    "call",
    [
        clients.update("shop", fields={"disabled": True}),
        clients.delete("shop"),
        clients.rotate_secret("shop", overlap=0),
    ],
)
def test_revocation_of_what_many_users_granted_is_waited_for(call: ApiCall[Any]) -> None:
    """Otherwise a new secret would be lost."""
    waits: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        waits.append(request.extensions["timeout"]["read"])
        return _streamed(200, status="OK", data={})

    with SsoClient("http://sso", transport=httpx.MockTransport(answer)) as client:
        client.send(replace(call, authenticated=False))
    assert waits == [pytest.approx(REVOCATION_S, abs=60)]
    assert waits[0] > REVOCATION_S


def test_missing_server_is_a_connection_error() -> None:
    with SsoClient(f"http://127.0.0.1:{free_port()}", retries=1) as client, pytest.raises(ConnectionFailed):
        client.send(users.get("1"))


def test_threads_share_one_token() -> None:
    tokens: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/proxy/oauth/token":
            tokens.append(f"token-{len(tokens)}")
            time.sleep(0.2)  # the other threads come meanwhile
            return _streamed(200, access_token=tokens[-1], expires_in=3600)
        is_refused = request.headers["Authorization"] == "Bearer token-0"
        return _streamed(401, status="ERROR") if is_refused else _streamed(200, status="OK", data={})

    credentials = ServiceClient("tanks-server", "secret")
    with SsoClient("http://sso", credentials, transport=httpx.MockTransport(answer)) as client:
        threads = [threading.Thread(target=client.send, args=(users.get("1"),)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.send(users.get("1")) == {}
    assert tokens == ["token-0", "token-1"]  # one for all, and one after it was refused


class ObservedLock:
    """Counts those who have come to it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.visitors = threading.Semaphore(0)

    def __enter__(self) -> None:
        self.visitors.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_that_wait_for_a_failing_sign_in_fail_with_it() -> None:
    requests: list[str] = []
    lock = ObservedLock()

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.path)
        if len(requests) == 1:
            assert all(lock.visitors.acquire(timeout=60) for _ in range(6))
        raise httpx.ConnectError("away")

    def send() -> None:
        with pytest.raises(ConnectionFailed):
            client.send(users.get("1"))
        ended.release()

    ended = threading.Semaphore(0)
    credentials = ServiceClient("tanks-server", "secret")
    with SsoClient("http://sso", credentials, retries=0, transport=httpx.MockTransport(answer)) as client:
        client._sign_in.lock = lock
        for _ in range(6):
            threading.Thread(target=send, daemon=True).start()
        assert all(ended.acquire(timeout=60) for _ in range(6))
        assert len(requests) == 1
        send()
    assert len(requests) == 2


class RotatingTransport(httpx.AsyncBaseTransport):
    """A service that ends the sign-in if a refresh token is used twice, as reuse detection does."""

    def __init__(self) -> None:
        self.current, self.refreshes = "r0", 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = (await request.aread()).decode()
        await anyio.lowlevel.checkpoint()
        if request.url.path == "/proxy/oauth/token":
            self.refreshes += 1
            if f"refresh_token={self.current}&" not in body + "&":
                return _streamed(400, error="invalid_grant")
            self.current = f"r{self.refreshes}"
            for _ in range(5):
                await anyio.lowlevel.checkpoint()  # the other tasks come meanwhile
            return _streamed(200, access_token="a", refresh_token=self.current)
        if request.url.path == "/proxy/oauth/exchangeToken":
            return _streamed(200, token=f"{JWT}{self.current}")
        return _streamed(200, status="OK", data={})


def _streamed(code: int, **body: object) -> httpx.Response:
    return httpx.Response(code, stream=httpx.ByteStream(json.dumps(body).encode()))


async def _send_from_many_tasks() -> None:
    transport = RotatingTransport()
    credentials = BrowserLogin("sso-cli", "r0", "factor")
    async with AsyncSsoClient("http://sso", credentials, transport=transport) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(client.send, users.get("1"))
        assert transport.refreshes == 1
        with anyio.CancelScope() as scope:  # a task that is cancelled while it signs in does not keep the lock
            credentials.jwt.value = ""
            scope.cancel()
            await client.send(users.get("1"))
        assert await client.send(users.get("1")) == {}
    assert credentials.refresh_token == transport.current


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tasks_use_a_refresh_token_once(backend: str) -> None:
    anyio.run(_send_from_many_tasks, backend=backend)


def test_refresh_whose_answer_was_lost_is_repeated_with_its_idempotency_key() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/proxy/oauth/exchangeToken":
            return _streamed(200, token=JWT)
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadError("lost")
        return _streamed(200, access_token="a", refresh_token=f"r{len(keys)}")

    credentials = BrowserLogin("sso-cli", "r0", "factor")
    with SsoClient("http://sso", transport=httpx.MockTransport(answer)) as client:
        client.run(credentials.headers())
        credentials.jwt.value = ""
        client.run(credentials.headers())
    assert keys[0] == keys[1] != keys[2]
    assert credentials.refresh_token == "r3"


class UnreachableTransport(httpx.AsyncBaseTransport):
    def __init__(self) -> None:
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        for _ in range(5):
            await anyio.lowlevel.checkpoint()  # the other tasks come meanwhile
        raise httpx.ConnectError("away")


async def _fail_in_many_tasks() -> None:
    transport = UnreachableTransport()

    async def send(client: AsyncSsoClient) -> None:
        with pytest.raises(ConnectionFailed):
            await client.send(users.get("1"))

    credentials = BrowserLogin("sso-cli", "r0", "factor")
    async with AsyncSsoClient("http://sso", credentials, retries=0, transport=transport) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(send, client)
        assert transport.requests == 1
        await send(client)
    assert transport.requests == 2


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tasks_that_wait_for_a_failing_sign_in_fail_with_it(backend: str) -> None:
    anyio.run(_fail_in_many_tasks, backend=backend)


def test_heartbeat_of_a_quiet_stream_ends_the_long_pauses() -> None:
    steps = follow(None, "", 0)
    next(steps)
    assert steps.send(httpx.ConnectError("away")) == Wait(1)
    next(steps)
    assert steps.send(httpx.ConnectError("away")) == Wait(2)
    next(steps)
    steps.send(httpx.Response(200, headers={"Content-Type": "text/event-stream"}))
    steps.send(b": heartbeat\n\n")
    assert steps.send(b"") == Wait(1)
