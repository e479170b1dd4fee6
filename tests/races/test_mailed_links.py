"""Links in mails: of fifty concurrent uses, one succeeds. The duration of /forgot tells nothing about an account.

A usual run is short; RACE_ROUNDS=200 gives long ones.
"""

import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.mailbox import link_in, path_of, wait_for_mails
from tests.kit.server import Server

ROUNDS = int(os.environ.get("RACE_ROUNDS", "1"))
CONCURRENT = 50
SAMPLES = 1000 if ROUNDS > 1 else 60  # of each kind
pytestmark = pytest.mark.timeout(300 + ROUNDS * 20)


@pytest.fixture
def browsers(server: Server) -> Iterator[list[Browser]]:
    browsers = [Browser(server) for _ in range(CONCURRENT)]
    yield browsers
    for browser in browsers:
        browser.http.close()


def submit_at_once(browsers: list[Browser], action: str, fields: list[dict[str, str]]) -> Counter[int]:
    """Sends the form of each browser at the same moment. Returns how often each status was answered."""
    start = Barrier(len(browsers))

    def submit(browser: Browser, own: dict[str, str]) -> int:
        start.wait()
        return browser.post(action, browser.form(action) | own).status_code

    with ThreadPoolExecutor(len(browsers)) as threads:
        return Counter(threads.map(submit, browsers, fields))


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_one_of_fifty_resets_sets_the_password(server: Server, browsers: list[Browser], _round: int) -> None:
    login = new_user(server)
    browsers[0].get("/forgot")
    browsers[0].submit("/forgot", login=login)
    link = path_of(link_in(wait_for_mails(server, login, "Choose a new password")[0]))
    for browser in browsers:
        browser.follow(browser.get(link))
    passwords = [f"number {number} wins the race" for number in range(CONCURRENT)]
    fields = [{"new_password": password, "repeat_password": password} for password in passwords]
    statuses = submit_at_once(browsers, "/reset", fields)
    assert statuses[303] == 1, statuses
    assert statuses.keys() <= {303, 410, 503}  # 503: the queue of passwords to hash is full
    assert [browser.is_signed_in for browser in browsers].count(True) == 1
    sql = "SELECT kind FROM account_events JOIN users USING (user_id) WHERE login = $1 AND kind = 'password_reset'"
    assert len(query(server, sql, login)) == 1


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_one_of_fifty_verifications_succeeds(server: Server, browsers: list[Browser], _round: int) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as owner:
        owner.open_account()
        owner.submit("/account/email/verify")
    link = path_of(link_in(wait_for_mails(server, login, "Verify your e-mail address")[0]))
    for browser in browsers:
        browser.get(link)
    assert submit_at_once(browsers, "/email/verify", [{}] * CONCURRENT) == {200: 1, 410: CONCURRENT - 1}


def test_duration_of_a_request_does_not_reveal_whether_the_account_exists(server: Server) -> None:
    known = new_user(server)
    durations: dict[str, list[float]] = {known: [], "nobody@example.com": []}
    with Browser(server) as browser:
        browser.get("/forgot")
        form = browser.form("/forgot")
        for number in range(SAMPLES):
            for login in list(durations) if number % 2 else list(durations)[::-1]:
                started = time.perf_counter()
                assert browser.post("/forgot", form | {"login": login}).status_code == 200
                durations[login].append(time.perf_counter() - started)
    assert abs(welch_t(*(trimmed(values) for values in durations.values()))) < 4


def trimmed(values: list[float]) -> list[float]:
    """Returns the values without the slowest tenth, which the machine has delayed."""
    return sorted(values)[: len(values) * 9 // 10]


def welch_t(first: list[float], second: list[float]) -> float:
    error = statistics.variance(first) / len(first) + statistics.variance(second) / len(second)
    return float((statistics.mean(first) - statistics.mean(second)) / error**0.5)
