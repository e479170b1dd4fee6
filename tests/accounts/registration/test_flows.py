"""A newcomer who comes from a site or a game registers and continues there."""

import html
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kit.browser import Browser
from tests.kit.game import Game, Session
from tests.kit.oauth import Site, close_all, new_site
from tests.kit.registration import complete, mailed_code, mailed_link, mails_to, new_address, request_mail
from tests.kit.server import Server


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def site(open_server: Server) -> Site:
    return new_site(open_server, profile="oidc")


@pytest.fixture
def session(open_server: Server) -> Iterator[Session]:
    with Game(open_server) as game:
        yield game.register()


def register_link(browser: Browser) -> str:
    """Returns the link "Create an account" of the sign-in form that the browser shows."""
    match = re.search(r'href="(/register[^"]*)"[^>]*>Create an account', browser.page.text)
    assert match, browser.page.text
    return html.unescape(match[1])


def test_newcomer_of_a_site_ends_at_the_site(browser: Browser, open_server: Server, site: Site) -> None:
    address = new_address()
    browser.get("/proxy/oauth/authorize", params=site.query())
    browser.follow(request_mail(browser, address, register_link(browser)))
    code = mailed_code(mails_to(open_server, address)[0])
    browser.follow(browser.submit("/register/code", otp=code))
    assert (
        f"form-action 'self' {urlsplit(site.redirect_uri).scheme}://" in browser.page.headers["Content-Security-Policy"]
    )
    answer = complete(browser)
    location = answer.headers["Location"]
    if location.startswith("/"):  # the site asks for consent
        browser.follow(answer)
        location = browser.submit(location, decision="allow").headers["Location"]
    assert location.startswith(site.redirect_uri)
    tokens = site.redeem(parse_qs(urlsplit(location).query)["code"][0], headers=site.basic())
    assert tokens.status_code == 200, tokens.text


def test_newcomer_of_a_game_ends_in_the_game(browser: Browser, open_server: Server, session: Session) -> None:
    address = new_address()
    browser.get(session.page)
    browser.follow(request_mail(browser, address, register_link(browser)))
    browser.get(mailed_link(mails_to(open_server, address)[0]))
    assert session.match in browser.page.text
    answer = complete(browser, nick="Tank Commander")
    assert answer.headers["Location"] == session.decision
    assert session.poll().json()["nick"] == "Tank Commander"


def test_link_that_a_stranger_asked_for_does_not_sign_in_their_game(
    browser: Browser, open_server: Server, session: Session
) -> None:
    address = new_address()
    browser.get(session.page)
    request_mail(browser, address, register_link(browser))
    with Browser(open_server) as victim:
        victim.get(mailed_link(mails_to(open_server, address)[0]))
        answer = complete(victim)
        assert answer.headers["Location"] == session.decision
        assert "Continue to" in victim.follow(answer).text  # a question, with the words of the game
        assert session.match in victim.page.text
    assert session.row("*")["user_id"] is None


def test_newcomer_whose_game_session_has_ended_gets_the_account(
    browser: Browser, open_server: Server, session: Session
) -> None:
    address = new_address()
    browser.get(session.page)
    request_mail(browser, address, register_link(browser))
    session.change("ends = now() - interval '1 s'")
    browser.get(mailed_link(mails_to(open_server, address)[0]))
    assert browser.page.status_code == 200
    browser.follow(complete(browser))
    assert "start it there again" in browser.notice


def test_link_continues_only_on_this_server(browser: Browser, open_server: Server) -> None:
    address = new_address()
    request_mail(browser, address, "/register?next=https://evil.example/")
    browser.get(mailed_link(mails_to(open_server, address)[0]))
    assert complete(browser).headers["Location"].startswith("/account?done=registered")
