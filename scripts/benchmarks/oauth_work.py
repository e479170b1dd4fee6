"""The kinds of load for an OAuth server: key set, userinfo, refresh, redemption of codes, whole login; tokens of
services and introspection, where the server has them.

Each function prepares what the load needs and returns the load; only the load is measured.
"""

import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import orjson

from scripts.benchmarks.http_clients import (
    Answer,
    BenchmarkError,
    CookieJar,
    RequestFailed,
    Scenario,
    Tally,
    get,
    post,
    run,
    run_all,
)
from scripts.benchmarks.oauth_login import PREPARE_S, login, obtain_code, prepare, signed_in, tokens_of
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_wrk import load

USERINFO_TOKENS = 4
CODES_PER_SECOND = 1000
CODES_S = 10.0  # time to obtain codes, which are valid for a minute

Load = Callable[[], Tally]


def jwks(target: Target, connections: int, seconds: float) -> Load:
    def ask(_: int) -> Scenario:
        _good((yield get(target.jwks)))

    return lambda: load(target.base_url, target.jwks, connections, seconds, ask)


def userinfo(target: Target, connections: int, seconds: float) -> Load:
    return userinfo_of(signed_in(target, USERINFO_TOKENS), target, connections, seconds)


def userinfo_of(people: list[dict[str, Any]], target: Target, connections: int, seconds: float) -> Load:
    """Requests userinfo with the tokens of these logins."""
    tokens = [one["access_token"] for one in people]

    def ask(number: int) -> Scenario:
        token = tokens[number % len(tokens)]
        _good((yield get(target.userinfo, {"Authorization": f"Bearer {token}"})))

    return lambda: load(target.base_url, target.userinfo, connections, seconds, ask, "userinfo.lua", tokens)


def refresh(target: Target, connections: int, seconds: float) -> Load:
    # wrk sends a request or two more than it has connections.
    return refresh_of(signed_in(target, connections + 2 + target.spare_chains), target, connections, seconds)


def refresh_of(people: list[dict[str, Any]], target: Target, connections: int, seconds: float) -> Load:
    """Refreshes the tokens of these logins, of which there are more than connections."""
    if not all("refresh_token" in one for one in people):
        raise BenchmarkError("the server issued no refresh token")
    tokens = [one["refresh_token"] for one in people]
    form, headers = target.refresh_form(), target.token_headers

    def ask(number: int) -> Scenario:
        answer = tokens_of((yield post(target.token, {**form, "refresh_token": tokens[number]}, headers)))
        tokens[number] = answer["refresh_token"]

    settings = {
        "BODY": f"{urlencode(form)}&refresh_token=",
        "HEADERS": "\n".join(f"{name}: {value}" for name, value in headers.items()),
    }
    return lambda: load(target.base_url, target.token, connections, seconds, ask, "refresh.lua", tokens, **settings)


def redeem(target: Target, connections: int, seconds: float) -> Load:
    """Redeems codes that were obtained beforehand, as many as time allowed. Ends with the last code."""
    codes: list[str] = []
    jar = CookieJar()

    def collect(user: str) -> Scenario:
        codes.append((yield from obtain_code(target, user, jar)))

    user = target.users[0]
    failures = prepare(target, [collect(user)])
    failures += prepare(target, (collect(user) for _ in range(round(CODES_PER_SECOND * seconds))), CODES_S)
    if not codes:
        raise BenchmarkError(f"there is no code to redeem: {failures[:1]}")

    def ask(code: str) -> Scenario:
        tokens_of((yield post(target.token, target.code_form(code), target.token_headers)))

    return lambda: run_all(target.base_url, (ask(code) for code in codes), connections, seconds)


def flow(target: Target, connections: int, seconds: float) -> Load:
    turns = itertools.cycle(target.users)
    return lambda: run(target.base_url, connections, seconds, lambda _: login(target, next(turns), lambda _: None))


def introspect(target: Target, connections: int, seconds: float) -> Load:
    if not target.introspect:
        raise BenchmarkError("there is no introspection to measure")
    credentials = target.client_form()
    forms = [{**credentials, "token": one["access_token"]} for one in signed_in(target, USERINFO_TOKENS)]

    def check(form: dict[str, str]) -> Scenario:
        answer = yield post(target.introspect, form)
        if answer.status != 200 or not orjson.loads(answer.body).get("active"):
            raise RequestFailed(f"not active: {answer.status} {answer.body[:200]!r}")

    failures = run_all(target.base_url, map(check, forms), 1, PREPARE_S).failures
    if failures:
        raise BenchmarkError(f"introspection: {failures[0]}")
    return _posted(target, target.introspect, forms, connections, seconds)


def client_credentials(target: Target, connections: int, seconds: float) -> Load:
    if not target.client_credentials:
        raise BenchmarkError("there is no client_credentials to measure")
    form = {"grant_type": "client_credentials", **target.client_form()}
    return _posted(target, target.token, [form], connections, seconds)


def _posted(target: Target, path: str, forms: list[dict[str, str]], connections: int, seconds: float) -> Load:
    """Posts these forms in turn."""
    lines = [urlencode(form) for form in forms]

    def ask(number: int) -> Scenario:
        _good((yield post(path, forms[number % len(forms)])))

    return lambda: load(target.base_url, path, connections, seconds, ask, "post.lua", lines)


WORK: dict[str, Callable[[Target, int, float], Load]] = {
    "jwks": jwks,
    "userinfo": userinfo,
    "refresh": refresh,
    "redeem": redeem,
    "flow": flow,
    "introspect": introspect,
    "client_credentials": client_credentials,
}


def _good(answer: Answer) -> None:
    if answer.status != 200:
        raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")
