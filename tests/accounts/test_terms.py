"""Terms, privacy policy and minimum age: boxes of every form that creates an account, asked again for a new version."""

from collections.abc import Iterator

import httpx
import pytest

from tests.kit import postgres
from tests.kit.browser import Browser, new_user, query, user_id_of
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, outcome
from tests.kit.oauth import new_browser, new_site, next_path_of, query_of
from tests.kit.registration import mailed_link, mails_to, new_address, request_mail
from tests.kit.server import QUICK, Server, running
from tests.upstream import stand_ins
from tests.upstream.player import add_provider, follow, player, press, sign_in
from tests.upstream.stand_ins import CodeProvider, Person

BOXES = {"accept_terms": "1", "is_of_age": "1"}


@pytest.fixture(scope="module")
def server(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_RATE_LOGIN": "0", "SSO_RATE_UPSTREAM": "0"}
    settings |= {"SSO_REGISTRATION": "open", "SSO_REGISTRATION_CHALLENGE": "off", "SSO_MINIMUM_AGE": "16"}
    settings |= {"SSO_TERMS_URL": "https://studio.example/terms", "SSO_TERMS_VERSION": "2026-11"}
    with running(tmp_path_factory.mktemp("terms"), **settings) as server:
        yield server


def accepted(server: Server, login: str) -> list[tuple[str, bool | None]]:
    sql = "SELECT terms_version, terms_accepted > now() - interval '1 hour' FROM users WHERE login = $1"
    return [(row[0], row[1]) for row in query(server, sql, login)]


def accept(browser: Browser) -> httpx.Response:
    return browser.submit("/account/terms", **BOXES)


def test_registration_needs_every_box(server: Server) -> None:
    with Browser(server) as browser:
        address = new_address()
        request_mail(browser, address)
        browser.get(mailed_link(mails_to(server, address)[0]))
        assert "I am at least 16 years old." in browser.page.text
        fields = {"nick": "Ann", "password": PASSWORD}
        for boxes in ({}, {"accept_terms": "1"}, {"accept_terms": "", "is_of_age": "1"}, {"accept_terms": "0"}):
            answer = browser.submit("/register/complete", **fields, **boxes)
            assert (answer.status_code, accepted(server, address)) == (422, []), boxes
            assert browser.problem == "Please check this box to continue."
        browser.follow(browser.submit("/register/complete", **fields, **BOXES))
        assert browser.notice == "Welcome! Your account has been created."
        assert accepted(server, address) == [("2026-11", True)]
        export = browser.submit("/account/export").json()["account"]
        assert (export["terms_version"], export["terms_accepted"][:2]) == ("2026-11", "20")


def test_first_sign_in_with_a_provider_needs_every_box(server: Server) -> None:
    provider = CodeProvider()
    with stand_ins.running(provider):
        provider_id = add_provider(server, provider, trusted_email=True)
        provider.person = Person(email="by.provider@example.com", name="Newcomer")
        browser = player(server)
        follow(browser, sign_in(browser, provider_id))
        refused = press(browser, "/login/identity", "/login/identity/create", nick="Ann", accept_terms="1")
        assert (refused.status_code, accepted(server, "by.provider@example.com")) == (422, [])
        press(browser, "/login/identity", "/login/identity/create", nick="Ann", accept_terms="1", is_of_age="1")
        assert accepted(server, "by.provider@example.com") == [("2026-11", True)]


def test_new_version_is_asked_before_the_session_can_be_used(server: Server) -> None:
    login = new_user(server)
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    with Browser(server) as browser:
        assert browser.http.post("/proxy/api/login", json={"login": login, "password": PASSWORD}).status_code == 200
        answer = browser.sign_in(login, next="/account/history")
        assert answer.headers["Location"] == "/account/terms?next=/account/history"
        for path in ("/account", "/account/history", "/account/enrol", "/account/totp", "/console", "/console/users"):
            assert browser.http.get(path).headers["Location"].startswith("/login?next=/"), path
        assert browser.http.get("/login?next=/console").headers["Location"] == "/account/terms?next=/console"
        browser.follow(answer)
        assert browser.http.post("/account/terms", data=BOXES).status_code == 403  # without the CSRF token
        assert browser.submit("/account/terms", accept_terms="1").status_code == 422
        assert accepted(server, login) == [("", None)]
        answer = accept(browser)
        assert answer.headers["Location"] == "/account/history"
        browser.follow(answer)
        assert "Terms accepted" in browser.page.text
        assert accepted(server, login) == [("2026-11", True)]
        assert browser.get("/account/terms?next=/console").headers["Location"] == "/console"
        assert "2026-11" in browser.get(f"/console/users/{user_id_of(server, login)}").text
        query(server, "UPDATE users SET terms_version = '2025-01' WHERE login = $1", login)  # as an older version
        assert browser.http.get("/account").headers["Location"] == "/login?next=/account"
        browser.get("/account/terms?next=https://elsewhere.example/")
        assert accept(browser).headers["Location"] == "/account"
        query(server, "UPDATE users SET terms_version = '2025-01' WHERE login = $1", login)
        browser.get("/account/terms")
        assert browser.submit("/logout").headers["Location"] == "/login"
        assert not query(server, "SELECT FROM browser_sessions s JOIN users USING (user_id) WHERE login = $1", login)


def test_game_and_site_continue_after_the_terms(server: Server) -> None:
    login = new_user(server)
    with Game(server) as game, Browser(server) as browser:
        session = game.register()
        browser.get(session.page)
        browser.follow(browser.submit("/login", login=login, password=PASSWORD))
        assert session.status == "pending"
        assert browser.http.get(session.decision).status_code == 303  # no way round
        browser.follow(accept(browser))
        while browser.page.is_redirect:
            browser.follow(browser.page)
        assert session.match in browser.page.text
        browser.submit(f"{session.decision}/continue")
        assert outcome(session.poll())[0] == "OK"
    site, person = new_site(server), new_browser(server)
    form = person.authorize(site)
    answer = person.submit(form, {"login": person.login, "password": PASSWORD})
    assert query_of(person.authorize(site, prompt="none"))["error"] == "interaction_required"
    assert person.http.get(next_path_of(form)).headers["Location"].startswith("/login")  # no way round
    page = person.http.get(answer.headers["Location"])
    assert site.redirect_uri.split("/")[2] in page.headers["Content-Security-Policy"]  # the form may redirect there
    answer = person.submit(page, BOXES, form=0)
    while "code=" not in answer.headers["Location"]:
        answer = person.http.get(answer.headers["Location"])
    assert site.redeem(query_of(answer)["code"]).status_code == 200
