"""What is asked of an OAuth server under load: its keys, who somebody is, the next refresh token, a whole login.

By wrk where there is one, which leaves more of the machine to the server; the whole login always by our own clients.
"""

import html
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import orjson

from scripts.benchmarks.http_clients import Answer, Failed, Jar, Journey, Tally, get, post, run, run_all, run_once

HERE = Path(__file__).parent
STEPS_MOST = 12
USERINFO_TOKENS = 4
CODES_PER_SECOND = 1000
_FORM = re.compile(r"<form\b([^>]*)>(.*?)(?:</form>|$)", re.DOTALL)
_INPUT = re.compile(r"<input\b([^>]*)>")
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")
_CODE = re.compile(r"[?&]code=([^&#]+)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


Load = Callable[[], Tally]


@dataclass(frozen=True)
class Target:
    """A server, and where things are in it."""

    base_url: str
    jwks: str
    userinfo: str
    token: str
    authorize: str
    client_id: str
    client_secret: str
    redirect_uri: str
    users: Sequence[str]
    password: str = field(repr=False)

    def credentials(self) -> dict[str, str]:
        return {"client_id": self.client_id, "client_secret": self.client_secret}

    def authorize_path(self) -> str:
        query = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "openid offline_access email profile",
            "state": f"s{os.urandom(6).hex()}",
            "nonce": f"n{os.urandom(6).hex()}",
        }
        return f"{self.authorize}?{urlencode(query)}"


def login(target: Target, user: str, took: Callable[[dict[str, Any]], None]) -> Journey:
    """A browser that was never here: authorize, the form, its answer, back to authorize, the code, the tokens."""
    form = {"grant_type": "authorization_code", "redirect_uri": target.redirect_uri, **target.credentials()}
    code = yield from obtain_code(target, user, Jar())
    took(_tokens((yield post(target.token, {**form, "code": code}))))


def obtain_code(target: Target, user: str, jar: Jar) -> Generator[bytes, Answer, str]:
    path = target.authorize_path()
    for _ in range(STEPS_MOST):
        answer = yield get(path, jar.headers())
        jar.take(answer)
        if answer.status == 200:
            path, fields = filled(answer, path, user, target.password)
            answer = yield post(path, fields, {"Referer": target.base_url + path, **jar.headers()})
            jar.take(answer)
        if answer.status not in (302, 303):
            raise Failed(f"{answer.status} at {path.partition('?')[0]}")
        if answer.location.startswith(target.redirect_uri):
            break
        parts = urlsplit(urljoin(target.base_url + path, answer.location))
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    found = _CODE.search(answer.location)
    if not found:
        raise Failed("no code")
    return found[1]


def filled(page: Answer, path: str, user: str, password: str) -> tuple[str, dict[str, str]]:
    """Where the page's form with a password leads, and all of its fields."""
    for attributes, inside in _FORM.findall(page.body.decode()):
        fields = [_attributes(text) for text in _INPUT.findall(inside)]
        if not any(one.get("type") == "password" for one in fields):
            continue
        values = {
            one["name"]: password
            if one.get("type") == "password"
            else user
            if one.get("type", "text") in ("text", "email")
            else one.get("value", "")
            for one in fields
            if "name" in one and one.get("type") != "checkbox"
        }
        return urljoin(path, _attributes(attributes).get("action", path)), values
    raise Failed("a page without a form to sign in")


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): html.unescape(one or two or three) for name, one, two, three in _ATTRIBUTE.findall(text)}


def _tokens(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        raise Failed(f"{answer.status} {answer.body[:200]!r}")
    tokens: dict[str, Any] = orjson.loads(answer.body)
    return tokens


def signed_in(target: Target, count: int) -> list[dict[str, Any]]:
    """The tokens of so many logins."""
    tokens: list[dict[str, Any]] = []
    users = target.users
    run_once(target.base_url, (login(target, users[at % len(users)], tokens.append) for at in range(count)))
    return tokens


# Each of them prepares what it needs, and gives the load itself: only that is measured.


def jwks(target: Target, connections: int, seconds: float) -> Load:
    def ask(_: int) -> Journey:
        _good((yield get(target.jwks)))

    return lambda: _load(target, connections, seconds, target.jwks, ask)


def userinfo(target: Target, connections: int, seconds: float) -> Load:
    tokens = [one["access_token"] for one in signed_in(target, USERINFO_TOKENS)]

    def ask(number: int) -> Journey:
        token = tokens[number % len(tokens)]
        _good((yield get(target.userinfo, {"Authorization": f"Bearer {token}"})))

    return lambda: _load(target, connections, seconds, target.userinfo, ask, "userinfo.lua", tokens)


def refresh(target: Target, connections: int, seconds: float) -> Load:
    form = {"grant_type": "refresh_token", **target.credentials()}
    # wrk makes a request or two more than it has connections.
    tokens = [one["refresh_token"] for one in signed_in(target, connections + 2)]

    def ask(number: int) -> Journey:
        answer = _tokens((yield post(target.token, {**form, "refresh_token": tokens[number]})))
        tokens[number] = answer["refresh_token"]

    before = f"{urlencode(form)}&refresh_token="
    return lambda: _load(target, connections, seconds, target.token, ask, "refresh.lua", tokens, BODY=before)


def redeem(target: Target, connections: int, seconds: float) -> Load:
    """Codes live for a minute and can be used once: so many are made, and it ends with the last."""
    form = {"grant_type": "authorization_code", "redirect_uri": target.redirect_uri, **target.credentials()}
    codes: list[str] = []
    jar = Jar()

    def collect(user: str) -> Journey:
        codes.append((yield from obtain_code(target, user, jar)))

    run_once(target.base_url, [collect(target.users[0])], 1)
    run_once(target.base_url, (collect(target.users[0]) for _ in range(round(CODES_PER_SECOND * seconds))))

    def ask(code: str) -> Journey:
        _tokens((yield post(target.token, {**form, "code": code})))

    return lambda: run_all(target.base_url, (ask(code) for code in codes), connections, seconds)


def flow(target: Target, connections: int, seconds: float) -> Load:
    turns = itertools.cycle(target.users)
    return lambda: run(target.base_url, connections, seconds, lambda _: login(target, next(turns), lambda _: None))


WORK: dict[str, Callable[[Target, int, float], Load]] = {
    "jwks": jwks,
    "userinfo": userinfo,
    "refresh": refresh,
    "redeem": redeem,
    "flow": flow,
}


def _good(answer: Answer) -> None:
    if answer.status != 200:
        raise Failed(f"{answer.status} {answer.body[:200]!r}")


def _load(
    target: Target,
    connections: int,
    seconds: float,
    path: str,
    ask: Callable[[int], Journey],
    script: str = "",
    tokens: Sequence[str] = (),
    **settings: str,
) -> Tally:
    wrk = shutil.which("wrk")
    if not wrk:
        return run(target.base_url, connections, seconds, ask)
    with _written(tokens) as file:
        command = [wrk, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--latency", "--timeout", "15s"]
        command += ["-s", str(HERE / script)] if script else []
        environment = {**os.environ, "TOKENS": str(file), "ASK_PATH": path, **settings}
        done = subprocess.run(
            [*command, target.base_url + path], env=environment, check=True, capture_output=True, text=True
        )
    return _read_wrk(done.stdout)


@contextmanager
def _written(lines: Sequence[str]) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        yield Path(file.name)


class WrkTally(Tally):
    """wrk tells quantiles, not each answer."""

    def __init__(self, seconds: float, answers: int, quantiles: dict[float, float], bad: int) -> None:
        super().__init__(seconds, [0.0] * answers, ["not 200"] * bad)
        self._quantiles = quantiles

    def quantile(self, share: float) -> float:
        return self._quantiles[share]


def _read_wrk(text: str) -> Tally:
    def number(pattern: str) -> re.Match[str] | None:
        return re.search(pattern, text, re.MULTILINE)

    def seconds(pattern: str) -> float:
        found = number(pattern)
        assert found, text
        return float(found[1]) * _UNITS[found[2]]

    total = number(r"(\d+) requests in")
    bad = number(r"Non-2xx or 3xx responses: (\d+)")
    lost = number(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
    assert total, text
    failed = int(bad[1]) if bad else 0
    quantiles = {0.5: seconds(r"^\s+50%\s+([\d.]+)(us|ms|s|m)"), 0.99: seconds(r"^\s+99%\s+([\d.]+)(us|ms|s|m)")}
    took = seconds(r"requests in ([\d.]+)(us|ms|s|m)")
    return WrkTally(took, int(total[1]) - failed, quantiles, failed + (sum(map(int, lost.groups())) if lost else 0))
