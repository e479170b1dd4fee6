"""The calls of the benchmark guard: their requests, and the CPU time that a worker needs for one of them."""

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from scripts.benchmarks.oauth_login import signed_in
from scripts.benchmarks.oauth_service import PASSWORD
from scripts.benchmarks.oauth_target import Target
from tests.kit.server import Server

REQUESTS, WARM_UP = 100, 20
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] | None = None


Call = Callable[[], Iterator[Request]]  # sent a response, it yields the next request


def cpu_ns(pid: int) -> int:
    """Returns the CPU time of a process, including threads that have ended, exactly: clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def calls(server: Server, target: Target) -> dict[str, Call]:
    login = {"login": target.users[0], "password": PASSWORD, "factor": "guard"}
    other = {**login, "login": target.users[1]}  # many sign-ins of the same user would end the user JWT
    (person,) = signed_in(target, 1)
    bearer = {"Authorization": f"Bearer {person['access_token']}"}
    client = target.client_form()
    jwt = json.loads(fetch(server, Request("POST", "/proxy/api/login", orjson.dumps(login), JSON)))["jwt"]
    user = {**JSON, "Authorization": f"Bearer {jwt}", "Factor": "guard"}
    permissions = orjson.dumps({"action": "get", "application_id": 500, "data": {"type": "list"}})
    introspected = urlencode({**client, "token": person["access_token"]}).encode()
    service = urlencode({**client, "grant_type": "client_credentials"}).encode()
    return {
        "health": repeated(Request("GET", "/healthz")),
        "key set": repeated(Request("GET", target.jwks)),
        "discovery": repeated(Request("GET", "/.well-known/openid-configuration")),
        "sign-in page": repeated(Request("GET", "/login")),
        "userinfo": repeated(Request("GET", target.userinfo, headers=bearer)),
        "introspection": repeated(Request("POST", target.introspect, introspected, FORM)),
        "client credentials": repeated(Request("POST", target.token, service, FORM)),
        "refresh": refreshing(target, person["refresh_token"]),
        "login by API": repeated(Request("POST", "/proxy/api/login", orjson.dumps(other), JSON)),
        "game session": repeated(Request("POST", "/proxy/api/gameSession/getGsid", b"{}", JSON)),
        "permissions": repeated(Request("POST", "/api/permissions/meta/data", permissions, user)),
        "user info": repeated(Request("POST", "/api/permissions/user/info", b"{}", user)),
    }


def repeated(request: Request) -> Call:
    def ask() -> Iterator[Request]:
        while True:
            yield request

    return ask


def refreshing(target: Target, refresh_token: str) -> Call:
    """Refreshes the same chain of tokens in all rounds."""
    current = refresh_token

    def ask() -> Any:
        nonlocal current
        while True:
            form = urlencode({**target.refresh_form(), "refresh_token": current}).encode()
            answer = yield Request("POST", target.token, form, {**FORM, **target.token_headers})
            current = orjson.loads(answer)["refresh_token"]

    return ask


def fetch(server: Server, request: Request) -> bytes:
    base = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(base.hostname or "", base.port or 0, timeout=30)
    return send(connection, request)


def send(connection: http.client.HTTPConnection, request: Request) -> bytes:
    connection.request(request.method, request.path, request.body or None, dict(request.headers or {}))
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise SystemExit(f"{request.method} {request.path}: {response.status} {body[:200]!r}")
    return body


def call_us(server: Server, call: Call) -> float:
    """Returns the CPU time of one call."""
    base = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(base.hostname or "", base.port or 0, timeout=30)
    (worker,) = server.workers()
    requests: Any = call()
    request = next(requests)
    began = 0
    for number in range(WARM_UP + REQUESTS):
        if number == WARM_UP:
            began = cpu_ns(worker)
        request = requests.send(send(connection, request))
    connection.close()
    return (cpu_ns(worker) - began) / REQUESTS / 1e3
