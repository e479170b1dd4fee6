"""Of many concurrent uses of a recovery code or passkey challenge, one succeeds. Long run: SSO_TEST_ROUNDS=200."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kit.browser import VISIT, Browser, each_worker, fresh_browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.passkey import page_options
from tests.kit.passkey_sign_in import new_passkey, register
from tests.kit.second_factors import codes_left, enrol
from tests.kit.server import Server
from tests.races.conftest import CONCURRENT

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
pytestmark = [pytest.mark.timeout(300 + ROUNDS * 20), pytest.mark.two_workers]


def test_one_of_many_uses_of_a_recovery_code_succeeds(server: Server) -> None:
    for _ in range(ROUNDS):
        login = new_user(server)
        with fresh_browser(server, login) as browser:
            _, codes = enrol(browser)
        body = {"login": login, "password": PASSWORD, "otp": codes[0]}

        def use(_: int, body: dict[str, str] = body) -> int:
            with server.client() as client:
                return client.post("/proxy/api/login", json=body).status_code

        with each_worker(server) as clients, ThreadPoolExecutor(CONCURRENT) as threads:
            for client in clients:
                client.get("/healthz")
            statuses = Counter(threads.map(use, range(CONCURRENT)))
        assert statuses[200] == 1, statuses
        assert statuses.keys() <= {200, 401, 403, 429, 503}
        assert codes_left(server, login) == 9


def test_one_of_many_answers_to_a_passkey_challenge_signs_in(server: Server) -> None:
    passkey = new_passkey(server)
    with fresh_browser(server, new_user(server)) as owner:
        owner.follow(register(owner, passkey))
    for _ in range(ROUNDS):
        with Browser(server) as browser:
            browser.get("/login")
            visit = browser.cookie(VISIT) or ""
            form, options = browser.form("/login/passkey"), page_options(browser.page.text)
        answers = [form | {"credential": passkey.get(options)} for _ in range(CONCURRENT)]

        def send(fields: dict[str, str], visit: str = visit) -> int:
            with Browser(server) as other:
                other.set_cookie(visit, VISIT)
                return other.post("/login/passkey", fields).status_code

        with ThreadPoolExecutor(CONCURRENT) as threads:
            statuses = Counter(threads.map(send, answers))
        assert statuses[303] == 1, statuses
        assert statuses.keys() <= {303, 401, 503}
