"""Limits of registration mails, per network and per recipient."""

from collections.abc import Iterator

import pytest
import trio

from sso.accounts.registration.verification import MAILS_PER_RECIPIENT, RECIPIENT_WINDOW_S
from sso.db.database import Database
from sso.db.rate_limit import WindowLimiter
from sso.db.statement import Statement
from tests.accounts.registration.conftest import OPEN
from tests.kit.browser import Browser, new_user, query
from tests.kit.plain_http import PlainTransport
from tests.kit.postgres import Postgres
from tests.kit.registration import complete, mailed_link, mails_to, new_address, request_mail
from tests.kit.server import Server, running

LIMIT = 3


@pytest.fixture(scope="module")
def limited_server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = OPEN | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_RATE_REGISTER": str(LIMIT)}
    settings |= {"SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("limited"), **settings) as server:
        yield server


def browser_at(server: Server, address: str) -> Browser:
    return Browser(server, transport=PlainTransport(address))


def test_network_has_a_limit(limited_server: Server) -> None:
    with browser_at(limited_server, "127.9.0.1") as browser, browser_at(limited_server, "127.9.0.2") as other:
        answers = [request_mail(browser, new_address()) for _ in range(LIMIT + 2)]
        assert [answer.status_code for answer in answers] == [303] * LIMIT + [429] * 2
        assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
        assert "Too many attempts" in browser.problem
        assert request_mail(other, new_address()).status_code == 303


@pytest.mark.parametrize("known", [True, False])
def test_recipient_gets_few_mails_and_can_still_register(open_server: Server, browser: Browser, known: bool) -> None:
    address = new_user(open_server) if known else new_address()
    name, domain = address.split("@")
    variants = [address, address.upper(), *(f"{name}+{number}@{domain}" for number in range(MAILS_PER_RECIPIENT))]
    with Browser(open_server) as stranger:
        answers = [request_mail(stranger, variant) for variant in variants]
    assert [answer.status_code for answer in answers] == [303] * MAILS_PER_RECIPIENT + [429] * 2
    answer = request_mail(browser, address)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= RECIPIENT_WINDOW_S
    assert "Their links work for a day" in browser.problem
    sent = query(open_server, "SELECT count(*) FROM mailed_links WHERE data ->> 'login' ILIKE $1", f"{name}%")
    assert sent[0][0] == MAILS_PER_RECIPIENT
    if not known:
        browser.get(mailed_link(mails_to(open_server, address)[0]))
        assert complete(browser).status_code == 303


async def test_concurrent_events_do_not_exceed_the_limit(database: Database) -> None:
    limiter, waits = WindowLimiter("test", LIMIT, 3600), []

    async def add(subject: str) -> None:
        waits.append(await limiter.add(database, subject))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(add, "ann")
    assert waits.count(0) == LIMIT
    assert all(0 <= wait <= 3660 for wait in waits)  # those that began before the window, too
    assert await limiter.add(database, "bob") == 0


async def test_limit_starts_again_after_its_window(database: Database) -> None:
    limiter = WindowLimiter("test", 1, 3600)
    assert await limiter.add(database, "ann") == 0
    assert await limiter.add(database, "ann") > 0
    await database.value(Statement("UPDATE throttle SET expires = now() - interval '1 s'"))
    assert await limiter.add(database, "ann") == 0
    assert await limiter.add(database, "ann") > 0
