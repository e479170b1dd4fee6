"""Links in mails: of many concurrent uses, one succeeds. SSO_TEST_ROUNDS=200 gives a long run."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.mailbox import link_in, path_of, wait_for_mails
from tests.kit.server import Server
from tests.races.conftest import CONCURRENT

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
pytestmark = [pytest.mark.timeout(300 + ROUNDS * 20), pytest.mark.two_workers]


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
def test_one_of_many_resets_sets_the_password(server: Server, browsers: list[Browser], _round: int) -> None:
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
    # 429: too many new passwords of one account; 503: the queue of passwords to hash is full
    assert statuses.keys() <= {303, 410, 429, 503}
    assert [browser.is_signed_in for browser in browsers].count(True) == 1
    sql = "SELECT kind FROM account_events JOIN users USING (user_id) WHERE login = $1 AND kind = 'password_reset'"
    assert len(query(server, sql, login)) == 1


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_one_of_many_verifications_succeeds(server: Server, browsers: list[Browser], _round: int) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as owner:
        owner.open_account()
        owner.submit("/account/email/verify")
    link = path_of(link_in(wait_for_mails(server, login, "Verify your e-mail address")[0]))
    for browser in browsers:
        browser.get(link)
    assert submit_at_once(browsers, "/email/verify", [{}] * CONCURRENT) == {200: 1, 410: CONCURRENT - 1}
