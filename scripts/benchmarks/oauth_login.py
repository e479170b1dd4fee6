"""A browser login at an OAuth server: authorize, sign in, back to authorize, code, tokens."""

import html
import re
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import orjson

from scripts.benchmarks.http_clients import (
    Answer,
    BenchmarkError,
    CookieJar,
    RequestFailed,
    Scenario,
    get,
    post,
    post_json,
    run_all,
)
from scripts.benchmarks.oauth_target import SinglePage, Target

MAX_STEPS = 12
PREPARE_S = 60.0
_FORM = re.compile(r"<form\b([^>]*)>(.*?)(?:</form>|$)", re.DOTALL)
_INPUT = re.compile(r"<input\b([^>]*)>")
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")
_CODE = re.compile(r"[?&]code=([^&#]+)")


def login(target: Target, user: str, took: Callable[[dict[str, Any]], None]) -> Scenario:
    """Logs in with a new browser and passes the tokens on."""
    code = yield from obtain_code(target, user, CookieJar())
    took(tokens_of((yield post(target.token, target.code_form(code), target.token_headers))))


class SignInPage(NamedTuple):
    """A sign-in page with a form, as a browser shows it."""

    path: str
    answer: Answer
    jar: CookieJar


def obtain_code(target: Target, user: str, jar: CookieJar) -> Generator[bytes, Answer, str]:
    """Signs in, unless the browser with these cookies is signed in."""
    path = target.authorize_path()
    if target.single_page:
        path = yield from _by_program(target, target.single_page, path, user, jar)
    reached = yield from open_page(target, path, jar)
    return reached if isinstance(reached, str) else (yield from submit(target, reached, user))


def open_page(target: Target, path: str, jar: CookieJar) -> Generator[bytes, Answer, SignInPage | str]:
    """Returns the sign-in page, or the code if the browser is signed in."""
    return (yield from _follow(target, path, (yield get(path, jar.headers())), jar))


def submit(target: Target, page: SignInPage, user: str) -> Generator[bytes, Answer, str]:
    """Submits the form. Returns the code."""
    path, fields = filled(page.answer, page.path, user, target.password)
    answer = yield post(path, fields, {"Referer": target.base_url + path, **page.jar.headers()})
    reached = yield from _follow(target, path, answer, page.jar)
    if isinstance(reached, str):
        return reached
    raise RequestFailed(f"200 at {path.partition('?')[0]}")


def _follow(target: Target, path: str, answer: Answer, jar: CookieJar) -> Generator[bytes, Answer, SignInPage | str]:
    """Follows redirects up to a page, or to the site, whose address has the code."""
    for _ in range(MAX_STEPS):
        jar.take(answer)
        if answer.status == 200:
            return SignInPage(path, answer, jar)
        if answer.status not in (302, 303):
            raise RequestFailed(f"{answer.status} at {path.partition('?')[0]}")
        if answer.location.startswith(target.redirect_uri):
            break
        parts = urlsplit(urljoin(target.base_url + path, answer.location))
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        answer = yield get(path, jar.headers())
    found = _CODE.search(answer.location)
    if not found:
        raise RequestFailed("no code")
    return found[1]


def _by_program(
    target: Target, page: SinglePage, path: str, user: str, jar: CookieJar
) -> Generator[bytes, Answer, str]:
    """Does what the script of a single-page sign-in does, unless a user is signed in already."""
    if not jar:
        yield get(path)
        answer = yield post_json(page.login, orjson.dumps({"username": user, "password": target.password}))
        if answer.status != 200:
            raise RequestFailed(f"{answer.status} at {page.login}")
        jar.take(answer)
    return f"{path}&{page.then}"


def filled(page: Answer, path: str, user: str, password: str) -> tuple[str, dict[str, str]]:
    """Returns the target of the sign-in form and its filled fields."""
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
    raise RequestFailed("the page has no sign-in form")


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): html.unescape(one or two or three) for name, one, two, three in _ATTRIBUTE.findall(text)}


def tokens_of(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")
    tokens: dict[str, Any] = orjson.loads(answer.body)
    return tokens


def signed_in(target: Target, count: int) -> list[dict[str, Any]]:
    """Returns the tokens of so many logins."""
    tokens: list[dict[str, Any]] = []
    users = target.users
    for _ in range(target.tries):
        missing = range(len(tokens), count)
        failures = prepare(target, (login(target, users[at % len(users)], tokens.append) for at in missing))
        if len(tokens) >= count:
            return tokens
    raise BenchmarkError(f"{len(tokens)} of {count} signed in: {failures[:1]}")


def prepare(target: Target, scenarios: Iterable[Scenario], seconds: float = PREPARE_S) -> list[str]:
    """Runs each scenario once, as far as the time allows. Returns the failures if the target may have some."""
    failures = run_all(target.base_url, scenarios, target.at_once, seconds).failures
    if failures and target.tries == 1:
        raise BenchmarkError(f"the load could not be prepared: {failures[0]}")
    return failures
