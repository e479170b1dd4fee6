"""What changes between the sign-in page and the sign-in counts, although the service remembers what it has read."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from sso.accounts.bans.operations import BanOperations, NewBan
from sso.app import build_app
from sso.audit.trail import AuditActor
from sso.db.errors import DeadlineExceeded
from sso.health import Health
from sso.services import Services
from sso.telemetry.metrics import Metrics
from tests.kit.builders import PASSWORD, add_user
from tests.kit.oauth import Browser, Site, new_browser, new_site, query_of
from tests.kit.server import Server
from tests.oauth.in_process import CREDENTIALS, apply_client, log_in, open_sign_in_page, redeem


def change(site: Site, **fields: Any) -> None:
    site.server.apply({"clients": [{"client_id": site.client_id, **fields}]})


@pytest.fixture
def known(server: Server) -> Site:
    """A site that the service has read lately."""
    site = new_site(server, redirect_hosts=["game.example.com", "shop.example.com"], profile="oidc")
    new_browser(server).authorize(site)
    return site


@pytest.fixture
def waiting(server: Server, known: Site) -> tuple[Browser, httpx.Response]:
    """A browser with a sign-in page, whose authorization is remembered."""
    browser = new_browser(server)
    page = browser.authorize(known)
    assert page.status_code == 200
    return browser, page


def sign_in(browser: Browser, page: httpx.Response) -> httpx.Response:
    """Signs in, and follows the redirect to a page of this service if there is one."""
    answer = browser.submit(page, {"login": browser.login, "password": PASSWORD})
    assert answer.status_code == 303
    location = answer.headers["Location"]
    return browser.http.get(location) if location.startswith("/") else answer


@pytest.mark.parametrize("fields", [{"disabled": True}, {"redirect_hosts": ["shop.example.com"]}])
def test_client_that_may_no_longer_use_the_redirect_uri_gets_no_code(
    known: Site, waiting: tuple[Browser, httpx.Response], fields: dict[str, Any]
) -> None:
    change(known, **fields)
    answer = sign_in(*waiting)
    assert answer.status_code == 400
    assert "Location" not in answer.headers


def test_user_is_asked_if_the_client_now_needs_a_consent(known: Site, waiting: tuple[Browser, httpx.Response]) -> None:
    change(known, consent=True)
    question = sign_in(*waiting)
    assert question.status_code == 200
    browser, _ = waiting
    assert "code" in query_of(browser.submit(question, {"decision": "allow"}))


def test_client_that_was_changed_without_effect_gets_its_code(
    known: Site, waiting: tuple[Browser, httpx.Response]
) -> None:
    change(known, name="Another name")
    assert known.redeem(query_of(sign_in(*waiting))["code"]).status_code == 200


async def ban_at(application_id: int, login: str, services: Services) -> None:
    user = await services.users.get_by_login(login)
    assert user is not None
    ban = NewBan("Cheating", application_id=application_id)
    await services.database.transaction(BanOperations(()).ban, AuditActor(), user.user_id, ban)


def test_user_who_is_banned_at_the_application_of_the_client_is_refused(server: Server, known: Site) -> None:
    server.apply({"applications": [{"application_id": 4711, "name": "With a ban"}]})
    change(known, application_id=4711)
    browser = new_browser(server)
    new_browser(server).authorize(known)  # the client is remembered as it is now
    page = browser.authorize(known)
    server.run_with_services(partial(ban_at, 4711, browser.login))
    assert query_of(sign_in(browser, page))["error"] == "access_denied"


def test_form_that_is_sent_several_times_gets_one_code(known: Site, waiting: tuple[Browser, httpx.Response]) -> None:
    browser, page = waiting
    cookies = dict(browser.http.cookies)

    def send(_: int) -> httpx.Response:
        tab = Browser(browser.server, browser.login)
        tab.http.cookies.update(cookies)
        return sign_in(tab, page)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    (redirect,) = [answer for answer in answers if answer.status_code == 303]
    assert known.redeem(query_of(redirect)["code"]).status_code == 200
    assert all("already finished" in answer.text for answer in answers if answer is not redirect)


def test_page_shows_the_client_as_it_is(server: Server, known: Site) -> None:
    browser = new_browser(server)
    assert f"Site {known.client_id}" in browser.authorize(known).text
    change(known, name="A new name")
    assert "A new name" in browser.authorize(known).text
    change(known, redirect_hosts=["shop.example.com"])
    assert browser.authorize(known).status_code == 400
    change(known, redirect_hosts=["game.example.com"])
    assert browser.authorize(known).status_code == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"disabled": True}, 400),
        ({"redirect_hosts": ["shop.example.com"]}, 400),
        ({"grant_types": ["client_credentials"], "application_id": 4711}, 302),
        ({"require_pushed_authorization_requests": True}, 302),
        ({"consent": True}, 200),
    ],
)
def test_user_who_is_signed_in_gets_no_code_for_a_client_that_was_changed(
    server: Server, known: Site, fields: dict[str, Any], status: int
) -> None:
    browser = new_browser(server).sign_in()
    assert browser.code(known)
    change(known, **fields)
    answer = browser.authorize(known)
    assert answer.status_code == status
    assert "code=" not in answer.headers.get("Location", "")


async def test_request_at_a_changed_client_counts_once_for_its_network(services: Services) -> None:
    async def requests() -> int:
        rows = await services.database.run_sql("SELECT coalesce(sum(failures), 0) FROM throttle", [])
        return int(rows[0][0])

    await apply_client(services)
    browser = build_app(services, Health(), Metrics()).test_client()
    await open_sign_in_page(browser)
    await apply_client(services, name="Another name")
    before = await requests()
    assert "Another name" in await open_sign_in_page(browser)
    assert await requests() == before + 1


async def test_sign_in_succeeds_although_the_new_hash_cannot_be_stored(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise DeadlineExceeded("the database did not answer in time")

    await apply_client(services, profile="oidc")
    user = await add_user(services)
    monkeypatch.setattr(type(services.hasher), "needs_rehash", lambda *_: True)
    monkeypatch.setattr(type(services.users), "rehash", fail)
    assert await redeem(services, CREDENTIALS, await log_in(services, user.login))
