"""The time of an answer does not show whether an address has an account.

Requests about known and unknown addresses alternate in random order, so that a busy machine disturbs both alike.
"""

import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from scripts.proofs.part import Deadline, PartResult, Progress
from tests.kit import postgres
from tests.kit.browser import Browser
from tests.kit.builders import PASSWORD
from tests.kit.server import NO_LIMITS, QUICK, running
from tests.kit.timing import welch

MAX_T = 4.5  # of Welch's test; exceeded by chance once in a hundred thousand times
MAX_SAMPLES = 10_000  # of each kind and page
MAX_USES = 3  # of one address at one page: it gets few mails an hour, and waits after 5 wrong passwords
USERS_PER_MINUTE = 400
REGISTRATION = {"SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off"}

Attempt = Callable[[Browser, str], tuple[str, dict[str, str]]]  # returns the request that is measured


def sign_in(browser: Browser, address: str) -> tuple[str, dict[str, str]]:
    return "/login", {"login": address, "password": "wrong password"}


def reset(browser: Browser, address: str) -> tuple[str, dict[str, str]]:
    return "/forgot", {"login": address}


def register(browser: Browser, address: str) -> tuple[str, dict[str, str]]:
    return "/register", {"email": address}


def code(browser: Browser, address: str) -> tuple[str, dict[str, str]]:
    """A known address was sent no code, and an unknown one was."""
    browser.get("/register")
    browser.follow(browser.submit("/register", email=address))
    return "/register/code", browser.form("/register/code") | {"otp": "000000"}


ATTEMPTS: dict[str, Attempt] = {"sign-in": sign_in, "reset": reset, "registration": register, "codes": code}


def run(minutes: float, progress: Progress) -> PartResult:
    result = PartResult(invariants=[f"|t| of {name} is below {MAX_T}." for name in ATTEMPTS])
    result.not_run["search"] = "only callers who may see all users can search for users"
    users = min(MAX_SAMPLES // MAX_USES + 1, max(20, round(minutes * USERS_PER_MINUTE)))
    known = {name: [f"known-{name}-{number:06}@example.com" for number in range(users)] for name in ATTEMPTS}
    with postgres.running() as database, tempfile.TemporaryDirectory() as folder:
        settings = QUICK | NO_LIMITS | REGISTRATION | {"SSO_WORKERS": "1", "SSO_DATABASE_URL": database.fresh()}
        with running(Path(folder), **settings) as server:
            progress(f"creating {users} users for each page …")
            for logins in known.values():
                server.apply({"users": [{"login": login, "password": PASSWORD} for login in logins]})
            end = Deadline(minutes)
            for number, (name, attempt) in enumerate(ATTEMPTS.items()):
                # A page that ends early leaves its time to the others.
                deadline = Deadline(end.seconds_left / 60 / (len(ATTEMPTS) - number))
                with Browser(server) as browser:
                    times = _measure(browser, attempt, known[name], deadline, partial(_show, progress, name))
                t = welch(times[True], times[False])
                samples = len(times[True])
                result.rounds += samples
                result.figures.append({"Page": name, "Samples of each kind": samples, "t": round(t, 2)})
                if abs(t) >= MAX_T:
                    result.violations.append(f"{name}: t = {t:.2f} with {samples} samples")
                if samples < MAX_SAMPLES:
                    result.not_run[f"{name} with {MAX_SAMPLES} samples"] = f"there was time for {samples}"
    return result


def _show(progress: Progress, name: str, text: str) -> None:
    progress(f"{name}: {text}")


def _measure(
    browser: Browser, attempt: Attempt, known: list[str], deadline: Deadline, progress: Progress
) -> dict[bool, list[float]]:
    times: dict[bool, list[float]] = {True: [], False: []}
    if attempt is not code:
        browser.get(attempt(browser, "")[0])
    for number in range(min(MAX_SAMPLES, len(known) * MAX_USES)):
        if deadline.is_over:
            break
        if number % 100 == 0:
            progress(f"{deadline}, {number} samples of each kind …")
        subject = number % len(known)
        for is_known in random.sample((True, False), 2):
            address = known[subject] if is_known else f"other{known[subject].removeprefix('known')}"
            path, fields = attempt(browser, address)
            if attempt is not code:
                fields = browser.form(path) | fields
            times[is_known].append(_response_time(browser, path, fields))
    return times


def _response_time(browser: Browser, path: str, fields: dict[str, str]) -> float:
    """Sends a form. A form that is refused because too many wait is sent again later."""
    while True:
        began = time.perf_counter()
        answer: httpx.Response = browser.post(path, fields)
        duration = time.perf_counter() - began
        if answer.status_code != 503:
            return duration
        time.sleep(int(answer.headers["Retry-After"]))
