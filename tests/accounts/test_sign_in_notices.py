"""Notices by mail about sign-ins with a browser, game or device that the account has not been used with before."""

import pytest

from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.device import confirm, new_device_site, start_device
from tests.kit.game import Game, press_continue
from tests.kit.mailbox import mails, wait_for_mails
from tests.kit.server import Server

SUBJECT = "New sign-in"
LOGIN = "/proxy/api/login"
FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"}


@pytest.fixture
def login(server: Server) -> str:
    """A user who has signed in before."""
    login = new_user(server)
    fresh_browser(server, login).http.close()
    return login


def allow_another_notice(server: Server) -> None:
    """Ends the pauses between notices."""
    query(server, "UPDATE throttle SET blocked_until = '-infinity'")


def no_further_notice(server: Server, login: str, count: int) -> bool:
    """Whether the user has got this many notices and no more, after a later mail to another user has arrived."""
    marker = new_user(server)
    for _ in range(2):
        fresh_browser(server, marker).http.close()
    wait_for_mails(server, marker, SUBJECT)
    return len(mails(server, login, SUBJECT)) == count


def test_unknown_browser_is_reported(server: Server, login: str) -> None:
    fresh_browser(server, login, headers=FIREFOX).http.close()
    (notice,) = wait_for_mails(server, login, SUBJECT)
    assert "Firefox on Linux" in notice
    assert "127.0.0.1" in notice
    assert "UTC" in notice
    assert f"{server.base_url}/account" in notice


def test_first_sign_in_and_known_browsers_are_not_reported(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser:
        for _ in range(2):
            browser.open_account()
            browser.submit("/logout")
            assert browser.sign_in(login).status_code == 303
    assert no_further_notice(server, login, 0)


def test_several_sign_ins_cause_one_notice(server: Server, login: str) -> None:
    for _ in range(3):
        fresh_browser(server, login).http.close()
    assert no_further_notice(server, login, 1)
    allow_another_notice(server)
    fresh_browser(server, login).http.close()
    assert len(wait_for_mails(server, login, SUBJECT, 2)) == 2


def test_sign_in_that_was_not_completed_is_not_reported(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 303
    with Browser(server) as browser:
        browser.sign_in(login, "wrong")
        browser.follow(browser.sign_in(login))
        browser.submit("/login/code", otp=app.wrong())
    assert no_further_notice(server, login, 0)


def test_notices_can_be_turned_off(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser:
        browser.open_account()
        browser.follow(browser.submit("/account/email/notices"))
        assert browser.form("/account/email/notices")["enable"] == "1"
        fresh_browser(server, login).http.close()
        assert no_further_notice(server, login, 0)
        browser.submit("/account/email/notices")
        fresh_browser(server, login).http.close()
        assert wait_for_mails(server, login, SUBJECT)


def test_turning_notices_off_requires_recent_authentication(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser:
        query(server, "UPDATE browser_sessions SET authenticated = NULL")
        browser.open_account()
        form = browser.form("/account/email/notices")
        without = {name: value for name, value in form.items() if name in ("csrf", "enable")}
        assert browser.post("/account/email/notices", without).status_code == 422
        assert browser.submit("/account/email/notices", current_password="wrong").status_code == 422
        assert browser.problem == "Your current password is incorrect."
        browser.follow(browser.submit("/account/email/notices", current_password=PASSWORD))
        assert browser.form("/account/email/notices")["enable"] == "1"
        assert "Sign-in notices turned off" in browser.page.text
        query(server, "UPDATE browser_sessions SET authenticated = NULL")
        browser.open_account()
        browser.follow(browser.submit("/account/email/notices"))  # no proof: they make the account safer
        assert "Sign-in notices turned on" in browser.page.text


def test_unknown_factor_is_reported_once(server: Server, login: str) -> None:
    with server.client() as http:
        for _ in range(2):
            fields = {"login": login, "password": PASSWORD, "factor": "a new machine"}
            assert http.post(LOGIN, json=fields).status_code == 200
            assert "a game or app" in wait_for_mails(server, login, SUBJECT)[0]
            allow_another_notice(server)
    assert no_further_notice(server, login, 1)


def test_program_without_a_factor_is_known_by_its_network(server: Server, login: str) -> None:
    with server.client() as http:
        for _ in range(2):
            assert http.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200
            wait_for_mails(server, login, SUBJECT)
            allow_another_notice(server)
    assert no_further_notice(server, login, 1)


def test_unknown_game_is_reported_once(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser, Game(server) as game:
        for _ in range(2):
            press_continue(browser, game.register(factor="a console"))
            assert game.address in wait_for_mails(server, login, SUBJECT)[0]
            allow_another_notice(server)
        assert no_further_notice(server, login, 1)


def test_unknown_device_of_a_site_is_reported_once(server: Server) -> None:
    login, site = new_user(server), new_device_site(server, name="Films for TV")
    with fresh_browser(server, login) as browser:
        for _ in range(2):
            confirm(browser, start_device(site))
            assert "Films for TV, address 127.0.0.1" in wait_for_mails(server, login, SUBJECT)[0]
            allow_another_notice(server)
        assert no_further_notice(server, login, 1)
