"""Compares the CPU time of a dozen calls with stored figures, to notice a change that makes the service slower.

A figure is the CPU time of a worker for one call, divided by that of a fixed piece of work in the same run, so that it
depends little on the speed of the machine. What all calls have in common (up to 25 %) is shown by itself. Changes above
10 % are reported. The program fails if a call takes 30 % more than its stored figure in three measurements in a row.
Figures are stored by kind of processor; on another kind there is nothing to compare with. ``--store`` replaces the
figures of this kind.
"""

import hashlib
import hmac
import http.client
import json
import platform
import re
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from scripts.benchmarks.oauth_login import signed_in
from scripts.benchmarks.oauth_service import PASSWORD, running_service
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.report import Steps, arguments, show
from sso.log import configure_logging
from tests.kit import postgres
from tests.kit.server import Server

FIGURES = Path(__file__).with_name("guard.json")
REPORTED, FAILING, ATTEMPTS = 0.10, 0.30, 3
ROUNDS, REQUESTS, WARM_UP = 4, 150, 20
UNIT_S = 0.05
MAX_FACTOR = 1.25
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

Ratios = dict[str, float]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] | None = None


Call = Callable[[], Iterator[Request]]  # sent a response, it yields the next request


def unit_us() -> float:
    """Returns the CPU time of the fixed piece of work: what a call does, without the service."""
    text = orjson.dumps({f"name{number}": {"value": [number, "x" * 20], "flag": True} for number in range(20)})
    left, right = socket.socketpair()
    pattern = re.compile(r"name(\d+)")
    began, count = time.process_time(), 0
    with left, right:
        while time.process_time() - began < UNIT_S:
            for _ in range(20):
                left.send(text)
                document = orjson.loads(right.recv(65536))
                found = {key: pattern.match(key) for key in document}
                names = sorted(f"{key}.{match[1]}" for key, match in found.items() if match)
                hmac.new(b"key", ",".join(names).encode(), hashlib.sha256).hexdigest()
            count += 20
        return (time.process_time() - began) / count * 1e6


def cpu_ns(pid: int) -> int:
    """Returns the CPU time of a process, including threads that have ended, exactly: clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def calls(server: Server, target: Target) -> dict[str, Call]:
    login = {"login": target.users[0], "password": PASSWORD, "factor": "guard"}
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
        "login by API": repeated(Request("POST", "/proxy/api/login", orjson.dumps(login), JSON)),
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


def measure(server: Server, wanted: Mapping[str, Call], steps: Steps) -> Ratios:
    """Measures each call several times. The least time counts: other programs can only add to it."""
    units: list[float] = []
    found: dict[str, list[float]] = {name: [] for name in wanted}
    for number in range(ROUNDS):
        for name, call in wanted.items():
            steps.detail(f"round {number + 1} of {ROUNDS}: {name}")
            units.append(unit_us())
            found[name].append(call_us(server, call))
    return {name: min(took) / min(units) for name, took in found.items()}


def machine_factor(measured: Ratios, stored: Ratios) -> float:
    """Returns by how much all calls differ: processors of a kind are not equal. A large difference is not ignored."""
    factors = [value / stored[name] for name, value in measured.items() if name in stored]
    return min(max(statistics.median(factors), 1 / MAX_FACTOR), MAX_FACTOR) if factors else 1.0


def changes(measured: Ratios, stored: Ratios, factor: float) -> Ratios:
    return {name: value / stored[name] / factor - 1 for name, value in measured.items() if name in stored}


def rows(measured: Ratios, stored: Ratios, factor: float) -> list[dict[str, Any]]:
    table = []
    changed = changes(measured, stored, factor)
    for name, value in measured.items():
        change = changed.get(name, 0.0)
        mark = ("slower" if change > 0 else "faster") if abs(change) > REPORTED else ""
        text = f"{change:+.0%}" if name in changed else "new"
        table.append({"call": name, "stored": stored.get(name, 0.0), "now": value, "change": text, "": mark})
    return table


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--store", action="store_true", help="store the figures instead of comparing them")
    options = parser.parse_args()
    configure_logging("auto", "error")
    all_figures: dict[str, Ratios] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    stored = {} if options.store else all_figures.get(platform.machine(), {})
    steps = Steps(1)
    limits = {"SSO_RATE_GETGSID": "0", "SSO_WORKERS": "1"}
    with postgres.running() as database, running_service(database.fresh(), **limits) as (server, target):
        steps.next("CPU time of calls")
        wanted = calls(server, target)
        measured = measure(server, wanted, steps)
        factor = machine_factor(measured, stored)
        for _ in range(ATTEMPTS - 1):
            if again := [name for name, change in changes(measured, stored, factor).items() if change > FAILING]:
                repeat = measure(server, {name: wanted[name] for name in again}, steps)
                measured |= {name: min(value, measured[name]) for name, value in repeat.items()}
    show(rows(measured, stored, factor), options.out)
    print(f"All calls together: {factor - 1:+.0%}, which the changes above do not include.")
    if options.store:
        figures = all_figures | {platform.machine(): {name: round(value, 3) for name, value in measured.items()}}
        FIGURES.write_text(json.dumps(figures, indent=4, sort_keys=True) + "\n")
    if failed := [name for name, change in changes(measured, stored, factor).items() if change > FAILING]:
        sys.exit(f"slower by more than {FAILING:.0%}: {', '.join(failed)}")


if __name__ == "__main__":
    main()
