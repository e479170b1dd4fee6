"""Of many concurrent requests, one uses a link, a code or an address. SSO_TEST_ROUNDS=200 gives a long run."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack

import httpx
import pytest
import trio

from tests.accounts.registration.conftest import OPEN
from tests.kit.browser import VISIT, Browser, query
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.registration import mailed_code, mailed_link, mails_to, new_address, request_mail
from tests.kit.server import TWO_WORKERS, Server, running
from tests.races.conftest import CONCURRENT

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
pytestmark = pytest.mark.timeout(120 + ROUNDS * 20)


@pytest.fixture(scope="module")
def open_server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = OPEN | TWO_WORKERS | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_REGISTRATION_CHALLENGE": "off"}
    with running(tmp_path_factory.mktemp("race"), **settings) as server:
        yield server


@pytest.fixture
def browser(open_server: Server) -> Iterator[Browser]:
    with Browser(open_server) as browser:
        yield browser


def send_concurrently(browser: Browser, path: str, forms: list[dict[str, str]]) -> list[httpx.Response]:
    """Sends the forms with the cookie of the browser, over connections that both workers share."""
    answers: list[httpx.Response] = []
    cookies = {VISIT: browser.cookie(VISIT) or ""}

    async def run(stack: AsyncExitStack) -> None:
        base_url = browser.server.base_url
        new = [httpx.AsyncClient(base_url=base_url, timeout=60, cookies=cookies) for _ in forms]
        clients = [await stack.enter_async_context(client) for client in new]
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(client.get, "/healthz")
        async with trio.open_nursery() as nursery:
            for client, form in zip(clients, forms, strict=True):
                nursery.start_soon(send, client, form)

    async def send(client: httpx.AsyncClient, form: dict[str, str]) -> None:
        answers.append(await client.post(path, data=form))

    async def run_and_close() -> None:
        async with AsyncExitStack() as stack:
            await run(stack)

    trio.run(run_and_close)
    return answers


def statuses(answers: list[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def count_users(server: Server, address: str) -> int:
    return int(query(server, "SELECT count(*) FROM users WHERE lower(login) = $1", address)[0][0])


def completion_form(browser: Browser, address: str, number: int = 0) -> dict[str, str]:
    request_mail(browser, address)
    browser.get(mailed_link(mails_to(browser.server, address, number + 1)[number]))
    return browser.form("/register/complete") | {"nick": "Ann", "password": PASSWORD}


def test_one_use_of_a_link_creates_the_user(browser: Browser, open_server: Server) -> None:
    for _ in range(ROUNDS):
        address = new_address()
        form = completion_form(browser, address)
        found = statuses(send_concurrently(browser, "/register/complete", [form] * CONCURRENT))
        assert found[303] == 1
        refused = sum(found[status] for status in (409, 410, 429, 503))
        assert refused == CONCURRENT - 1, found
        assert count_users(open_server, address) == 1


def test_several_links_of_an_address_create_one_user(browser: Browser, open_server: Server) -> None:
    for _ in range(ROUNDS):
        address = new_address()
        forms = [completion_form(browser, address, number) for number in range(5)] * (CONCURRENT // 5)
        found = statuses(send_concurrently(browser, "/register/complete", forms))
        assert found[303] == 1
        refused = sum(found[status] for status in (409, 410, 429, 503))
        assert refused == CONCURRENT - 1, found
        assert count_users(open_server, address) == 1


def test_one_use_of_a_code_is_accepted(browser: Browser, open_server: Server) -> None:
    for _ in range(ROUNDS):
        address = new_address()
        browser.follow(request_mail(browser, address))
        form = browser.form("/register/code") | {"otp": mailed_code(mails_to(open_server, address)[0])}
        answers = send_concurrently(browser, "/register/code", [form] * CONCURRENT)
        assert len([answer for answer in answers if "token=" in answer.headers.get("Location", "")]) == 1


def test_concurrent_guesses_of_a_code_are_five(browser: Browser, open_server: Server) -> None:
    address = new_address()
    browser.follow(request_mail(browser, address))
    code = int(mailed_code(mails_to(open_server, address)[0]))
    form = browser.form("/register/code")
    guesses = [form | {"otp": f"{(code + number) % 10**6:06}"} for number in range(1, CONCURRENT)]
    assert statuses(send_concurrently(browser, "/register/code", guesses)) == {422: CONCURRENT - 1}
    [row] = query(open_server, "SELECT attempts FROM registration_codes WHERE login = $1", address)
    assert row["attempts"] == 5
    assert browser.submit("/register/code", otp=f"{code:06}").status_code == 422
