"""SSO_REQUIRE_2FA: users without a second factor set one up before their session can be used."""

import html
import re

import pytest

from tests.kit.browser import AuthenticatorApp, Browser, Forms, fresh_browser, mailed_codes, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game, outcome
from tests.kit.oauth import new_browser, new_site, next_path_of, query_of
from tests.kit.passkey import SoftwarePasskey, page_options
from tests.kit.registration import mailed_link, mails_to, new_address, request_mail
from tests.kit.second_factors import displayed_secret
from tests.kit.server import Server

ENROL = "/account/enrol?next=/account"


@pytest.fixture
def admin(strict: Server) -> str:
    login = new_user(strict)
    permission = {"user_id": login, "application_id": 1, "data": {"roles": ["root"], "private_data": {}}}
    strict.apply({"permissions": [permission]})
    return login


def test_administrator_without_a_factor_sets_one_up_first(strict: Server, admin: str) -> None:
    with Browser(strict) as browser:
        answer = browser.sign_in(admin, next="/account?done=ended")
        assert answer.headers["Location"] == "/account/enrol?next=/account%3Fdone%3Dended"
        browser.follow(answer)
        assert "Protect your account" in browser.page.text
        for path in ("/account", "/account/recovery-codes", "/"):
            assert browser.http.get(path).headers["Location"].startswith("/login")
        for path in ("/account/password", "/account/sessions/end-others", "/account/recovery-codes"):
            form = {"csrf": browser.form("/logout")["csrf"], "current_password": PASSWORD}
            assert browser.post(path, form).headers["Location"] == "/login?next=/account"
        browser.get("/account/totp?next=/account%3Fdone%3Dended")
        assert "current_password" not in browser.page.text  # the user has just signed in
        app = AuthenticatorApp(displayed_secret(browser))
        answer = browser.submit("/account/totp?next=/account%3Fdone%3Dended", otp=app.code())
        assert answer.headers["Location"] == "/account/recovery-codes?next=/account%3Fdone%3Dended"
        browser.follow(answer)
        assert len(re.findall(r"\d{4}-\d{4}-\d{4}", browser.page.text)) == 10
        assert 'href="/account?done=ended"' in browser.page.text
        assert browser.is_signed_in


@pytest.mark.parametrize("factor", ["email", "passkey"])
def test_every_factor_meets_the_requirement(strict: Server, admin: str, factor: str) -> None:
    with Browser(strict) as browser:
        browser.follow(browser.sign_in(admin))
        if factor == "email":  # turning it on is no use of it
            browser.follow(browser.submit("/account/email-2fa?next=/account"))
            assert not browser.is_signed_in
            browser.get("/login/code?next=/account/recovery-codes%3Fnext%3D/account")
            answer = browser.submit("/login/code", otp=mailed_codes(strict, admin)[-1])
        else:
            passkey = SoftwarePasskey(strict.base_url.replace("127.0.0.1", "localhost"))
            options = page_options(browser.page.text, "passkey-registration")
            answer = browser.submit("/account/passkeys?next=/account", credential=passkey.create(options))
        assert answer.headers["Location"] == "/account/recovery-codes?next=/account"
        assert browser.is_signed_in


def test_last_factor_of_an_administrator_cannot_be_given_up(strict: Server, admin: str) -> None:
    strict.apply({"users": [{"login": admin, "totp_secret": TOTP_SECRET}]})
    app = AuthenticatorApp(TOTP_SECRET)
    with Browser(strict) as browser:
        browser.follow(browser.sign_in(admin))
        assert browser.submit("/login/code", otp=app.code()).headers["Location"] == "/account"
        browser.open_account()
        proof = {"current_password": PASSWORD, "present_otp": app.code()}
        assert browser.submit("/account/totp/remove", **proof).headers["Location"] == "/account/enrol"
        assert not browser.is_signed_in


def test_console_demands_a_second_factor_of_administrators(strict: Server, admin: str) -> None:
    """Also of users who became administrators after they signed in."""
    with Browser(strict) as browser:
        browser.follow(browser.sign_in(admin, next="/console"))
        assert "Protect your account" in browser.page.text
        for path in ("/console", "/console/users", "/console/explorer?user=1"):
            assert browser.get(path).headers["Location"].startswith("/account/enrol?next=/console"), path
    login = new_user(strict)
    with fresh_browser(strict, login) as browser:
        strict.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
        for path in ("/console", "/console/users", "/console/users/export.csv"):
            answer = browser.get(path)
            assert (answer.status_code, "requires a second factor" in answer.text) == (403, True), path
        form = {"csrf": browser.form("/logout")["csrf"], "login": "made.without.factor@example.com"}
        assert browser.post("/console/users/new", form).status_code == 403
        strict.apply({"users": [{"login": login, "totp_secret": TOTP_SECRET}]})
    with Browser(strict) as browser:
        browser.follow(browser.sign_in(login, next="/console"))
        browser.follow(browser.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).code()))
        assert "Overview" in browser.page.text
        assert "protected by a password alone" not in browser.page.text


def test_others_and_the_login_operation_are_not_affected(strict: Server, admin: str) -> None:
    with fresh_browser(strict, new_user(strict)) as browser:
        assert browser.is_signed_in
        answer = browser.http.post("/proxy/api/login", json={"login": admin, "password": PASSWORD})
        assert answer.status_code == 200


def test_user_can_sign_out_instead(strict: Server, admin: str) -> None:
    with Browser(strict) as browser:
        browser.follow(browser.sign_in(admin))
        assert browser.submit("/logout").headers["Location"] == "/login"
        assert browser.get(ENROL).headers["Location"] == "/login?next=/account"
    sql = "SELECT 1 FROM browser_sessions JOIN users USING (user_id) WHERE login = $1"
    assert not query(strict, sql, admin)


def test_requirement_asks_for_the_password_after_ten_minutes(strict: Server, admin: str) -> None:
    with Browser(strict) as browser:
        browser.follow(browser.sign_in(admin))
        query(strict, "UPDATE browser_sessions SET authenticated = authenticated - interval '601 s'")
        browser.get(ENROL)
        fields = {"csrf": browser.form("/logout")["csrf"], "enable": "1"}
        assert browser.post("/account/email-2fa", fields).status_code == 422
        assert browser.post("/account/email-2fa", fields | {"current_password": PASSWORD}).status_code == 303


def test_authorization_continues_after_the_setup(strict: Server) -> None:
    site, browser = new_site(strict), new_browser(strict)
    permission = {"user_id": browser.login, "application_id": 1, "data": {"roles": ["root"], "private_data": {}}}
    strict.apply({"permissions": [permission]})
    form = browser.authorize(site)
    answer = browser.submit(form, {"login": browser.login, "password": PASSWORD})
    assert answer.headers["Location"].startswith("/account/enrol?next=/login%3Fnext%3D/proxy/oauth/authorize/")
    assert query_of(browser.authorize(site, prompt="none"))["error"] == "interaction_required"
    page = browser.http.get(answer.headers["Location"])
    assert browser.http.get(next_path_of(form)).headers["Location"].startswith("/login")  # no way round
    action = next(action for action in re.findall(r'action="([^"]+)"', page.text) if "email-2fa" in action)
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert csrf
    answer = browser.http.post(html.unescape(action), data={"csrf": csrf[1], "enable": "1"})
    assert answer.headers["Location"].startswith("/login/code?next=/account/recovery-codes%3Fnext%3D/login")
    page = browser.http.get(answer.headers["Location"])
    answer = browser.submit(page, {"otp": mailed_codes(strict, browser.login)[-1]}, form=0)
    assert answer.headers["Location"].startswith("/account/recovery-codes?next=/login")
    page = browser.http.get(answer.headers["Location"])
    link = re.search(r'href="(/login[^"]+)"', page.text)
    assert link
    answer = browser.http.get(html.unescape(link[1]))
    while "code=" not in answer.headers["Location"]:
        answer = browser.http.get(answer.headers["Location"])
    assert site.redeem(query_of(answer)["code"]).status_code == 200


def enrol_with_codes_by_mail(browser: Browser, login: str, mails: int = 1) -> str:
    """Turns on codes by e-mail where a factor must be set up. Returns where the page with recovery codes leads to.

    ``mails`` is the number of mails with a code that the user gets until then.
    """
    action = next(action for action in Forms(browser.page.text).by_action if action.startswith("/account/email-2fa"))
    browser.follow(browser.submit(action))
    browser.follow(browser.submit("/login/code", otp=mailed_codes(browser.server, login, mails)[-1]))
    link = re.search(r'class="button quiet" href="([^"]+)">I have saved them', browser.page.text)
    assert link
    return html.unescape(link[1])


def test_new_account_sets_up_a_factor_right_after_the_registration(strictest: Server) -> None:
    with Browser(strictest) as browser:
        address = new_address()
        request_mail(browser, address)
        browser.get(mailed_link(mails_to(strictest, address)[0]))
        answer = browser.submit("/register/complete", nick="Ann", password=PASSWORD)
        assert answer.headers["Location"].startswith("/account/enrol?next=")
        browser.follow(answer)
        assert "Protect your account" in browser.page.text
        assert not browser.is_signed_in
        browser.get(answer.headers["Location"])
        browser.get(enrol_with_codes_by_mail(browser, address, mails=2))
        assert browser.notice == "Welcome! Your account has been created."


def test_another_account_is_used_at_the_second_factor_while_one_must_set_up_its_own(strictest: Server) -> None:
    with Browser(strictest) as browser:
        browser.sign_in(new_user(strictest))
        browser.follow(browser.sign_in(new_user(strictest, totp_secret=TOTP_SECRET), next="/account/history"))
        answer = browser.submit("/logout")
        assert answer.headers["Location"] == "/login?next=/account/history"
        assert "/login" in Forms(browser.follow(answer).text).by_action
        assert "Protect your account" in browser.get("/account/enrol").text


def test_game_is_signed_in_after_the_setup(strictest: Server) -> None:
    """The player confirms the game on its page, after the setup and not before."""
    login = new_user(strictest)
    with Game(strictest) as game, Browser(strictest) as browser:
        session = game.register()
        browser.get(session.page)
        browser.follow(browser.submit("/login", login=login, password=PASSWORD))
        assert "Protect your account" in browser.page.text
        assert session.status == "pending"
        assert browser.http.get(session.decision).status_code == 303  # no way round
        browser.follow(browser.get(enrol_with_codes_by_mail(browser, login)))
        assert session.match in browser.page.text
        assert session.status == "pending"
        browser.submit(f"{session.decision}/continue")
        assert outcome(session.poll())[0] == "OK"
