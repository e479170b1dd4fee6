"""Neither bytes nor times of a response show whether an address has an account.

A usual run takes few samples and compares no times, because they are not reliable on a busy machine.
TIMING_SAMPLES=1000, on a quiet machine, also compares the times.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.accounts.registration.conftest import OPEN
from tests.kit.browser import Browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.registration import mails_to
from tests.kit.server import Server, running
from tests.kit.timing import welch

SAMPLES = int(os.environ.get("TIMING_SAMPLES", "0"))
MAX_T = 4.0  # of Welch's test
MAX_USES = 3  # of one address, which gets 5 mails an hour and is blocked for a moment after 5 wrong passwords
# What differs from one response to the next anyway: random values, times and ids.
_RANDOM = re.compile(r"[A-Za-z0-9_-]{22,}(\.[0-9.]+\.[A-Za-z0-9_-]{43})?")
IGNORED_HEADERS = {"date", "x-request-id"}
pytestmark = pytest.mark.timeout(120 + SAMPLES)


@pytest.fixture(scope="module")
def open_server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = OPEN | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REGISTRATION_CHALLENGE": "off"}
    with running(tmp_path_factory.mktemp("enumeration"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def known(open_server: Server) -> list[str]:
    """Logins of users: so many that none is used too often, because the limits of an address would show."""
    logins = [f"known-{number:06}@example.com" for number in range(max(8, SAMPLES // MAX_USES + 1))]
    open_server.apply({"users": [{"login": login, "password": PASSWORD, "nick": "Ann"} for login in logins]})
    return logins


def unknown(number: int) -> str:
    """Returns an address that no user has, with as many characters as those that users have."""
    return f"other-{number:06}@example.com"


Attempt = Callable[[Browser, str], list[httpx.Response]]


def register(browser: Browser, address: str) -> list[httpx.Response]:
    browser.get("/register")
    answer = browser.submit("/register", email=address)
    browser.follow(answer)
    return [answer, browser.page, browser.submit("/register/code", otp="000000")]


def sign_in(browser: Browser, address: str) -> list[httpx.Response]:
    browser.get("/login")
    return [browser.submit("/login", login=address, password="wrong password")]


def forgot(browser: Browser, address: str) -> list[httpx.Response]:
    browser.get("/forgot")
    return [browser.submit("/forgot", login=address)]


def visible(response: httpx.Response, address: str) -> list[object]:
    """Returns what a client sees of a response, without the address and random values."""
    headers = sorted((name, value) for name, value in response.headers.multi_items() if name not in IGNORED_HEADERS)
    texts = [f"{name}: {value}" for name, value in headers] + [response.text.replace(address, "ADDRESS")]
    return [response.status_code, *(_RANDOM.sub("RANDOM", text) for text in texts)]


@pytest.mark.parametrize("attempt", [register, sign_in, forgot])
def test_responses_are_the_same_for_known_and_unknown_addresses(
    open_server: Server, known: list[str], attempt: Attempt
) -> None:
    seen: list[list[object]] = []
    for address in (known[-1], unknown(0)):
        with Browser(open_server) as browser:
            seen.append([visible(response, address) for response in attempt(browser, address)])
            seen[-1].append(sorted((cookie.name, cookie.expires) for cookie in browser.http.cookies.jar))
    assert seen[0] == seen[1]


def test_existing_account_and_newcomer_get_one_mail_each(open_server: Server) -> None:
    login, newcomer = new_user(open_server, login="owner@example.com"), "newcomer@example.com"
    with Browser(open_server) as browser:
        register(browser, login)
        register(browser, newcomer)
    assert "already has one" in mails_to(open_server, login)[0]
    assert "Your code is" in mails_to(open_server, newcomer)[0]


def response_time(browser: Browser, page: str, form: dict[str, str]) -> float:
    """Sends a form. A form that is refused because too many wait is sent again later."""
    while True:
        began = time.perf_counter()
        answer = browser.post(page, form)
        duration = time.perf_counter() - began
        if answer.status_code != 503:
            assert answer.status_code in (200, 303, 401)
            return duration
        time.sleep(int(answer.headers["Retry-After"]))


@pytest.mark.skipif(not SAMPLES, reason="takes long: set TIMING_SAMPLES=1000 on a quiet machine")
@pytest.mark.parametrize("page", ["/register", "/login", "/forgot"])
def test_times_are_the_same_for_known_and_unknown_addresses(open_server: Server, known: list[str], page: str) -> None:
    times: dict[bool, list[float]] = {True: [], False: []}
    name = "email" if page == "/register" else "login"
    with Browser(open_server) as browser:
        browser.get(page)
        form = browser.form(page) | {"password": "wrong password"}
        pairs = [(is_known, number) for number in range(SAMPLES) for is_known in (True, False)]
        for is_known, number in random.sample(pairs, len(pairs)):
            address = known[number % len(known)] if is_known else unknown(1000 + number % len(known))
            times[is_known].append(response_time(browser, page, form | {name: address}))
    t = welch(times[True], times[False])
    print(f"{page}: t = {t:.2f}")
    assert abs(t) < MAX_T
