"""The account page, over HTTP."""

import html
import re
from collections.abc import Iterator

import pytest

from tests.kit.browser import (
    SESSION,
    AuthenticatorApp,
    Browser,
    forget_authentication,
    fresh_browser,
    mailed_codes,
    new_user,
)
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.second_factors import displayed_secret
from tests.kit.server import Server

NEW = "a longer and better one"
FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"}


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    """A signed-in browser on the account page."""
    with fresh_browser(server, login) as browser:
        browser.open_account()
        yield browser


def change(browser: Browser, current: str = PASSWORD, new: str = NEW, repeat: str = NEW) -> int:
    fields = {"current_password": current, "new_password": new, "repeat_password": repeat}
    return browser.submit("/account/password", **fields).status_code


def test_changed_password_replaces_the_old_one_and_may_have_any_characters(
    browser: Browser, server: Server, login: str
) -> None:
    odd = "pässwörd 🎮 &=+%<>\"' "
    assert change(browser, new=odd, repeat=odd) == 303
    with Browser(server) as other:
        assert other.sign_in(login).status_code == 401
        assert other.sign_in(login, odd).status_code == 303


def test_password_change_keeps_this_browser_signed_in_and_ends_other_sessions(
    browser: Browser, server: Server, login: str
) -> None:
    tokens = browser.http.post("/proxy/api/login", json={"login": login, "password": PASSWORD}).json()
    before = browser.cookie()
    with fresh_browser(server, login) as other:
        assert change(browser) == 303
        assert not other.is_signed_in
    assert browser.cookie() != before
    assert browser.get("/account?done=password").status_code == 200
    assert browser.notice == "Your password has been changed. You have been signed out everywhere else."
    for name in ("token", "stoken"):
        assert browser.http.post("/proxy/api/login", json={"token": tokens[name]}).status_code == 401
    with Browser(server) as thief:
        thief.set_cookie(before or "")
        assert not thief.is_signed_in


INVALID_CHANGES: list[tuple[dict[str, str], str]] = [
    ({"current": "wrong"}, "Your current password is incorrect."),
    ({"current": ""}, "Your current password is incorrect."),
    ({"repeat": NEW + "x"}, "The new passwords do not match."),
    ({"new": "short12", "repeat": "short12"}, "Your password must have at least 8 characters."),
    ({"new": "", "repeat": ""}, "Your password must have at least 8 characters."),
    ({"new": "x" * 257, "repeat": "x" * 257}, "Your password must have at most 256 characters."),
    (
        {"new": "Password1", "repeat": "Password1"},
        "This is a very common password. Use several words that do not belong together.",
    ),
]


def test_invalid_password_change_is_rejected(browser: Browser, server: Server, login: str) -> None:
    with fresh_browser(server, login) as other:
        for fields, problem in INVALID_CHANGES:
            assert change(browser, **fields) == 422, fields
            assert browser.problem == problem
        assert browser.is_signed_in
        assert other.is_signed_in
    with Browser(server) as other:
        assert other.sign_in(login).status_code == 303
    assert change(browser) == 303  # the same page still works


def test_totp_setup_with_the_shown_secret_succeeds(browser: Browser, server: Server, login: str) -> None:
    browser.get("/account/totp")
    app = AuthenticatorApp(displayed_secret(browser))
    code = app.code()
    assert "<svg" in browser.page.text
    answer = browser.submit("/account/totp", otp=code, current_password=PASSWORD)
    browser.follow(answer)
    assert browser.notice == "Your authenticator app has been set up. You have been signed out everywhere else."
    with Browser(server) as other:
        assert other.follow(other.sign_in(login)).status_code == 200
        assert other.submit("/login/code", otp=code).status_code == 401  # this code has been used
        assert other.submit("/login/code", otp=app.code()).status_code == 303


def test_each_totp_setup_has_a_new_secret_which_the_qr_code_contains(browser: Browser, login: str) -> None:
    import segno

    browser.get("/account/totp")
    first = displayed_secret(browser)
    browser.get("/account/totp")
    assert len(first) == 32
    assert displayed_secret(browser) != first
    uri = f"otpauth://totp/127.0.0.1:{login.replace('@', '%40')}?secret={displayed_secret(browser)}&issuer=127.0.0.1"
    assert segno.make(uri, error="m").svg_inline(omitsize=True, border=1) in browser.page.text


def test_qr_code_of_a_long_login_has_a_short_label(server: Server) -> None:
    login = new_user(server, login="\N{CJK UNIFIED IDEOGRAPH-4E00}" * 60 + "@example.com")
    with fresh_browser(server, login) as browser:
        browser.get("/account/totp")
    match = re.search(r'href="(otpauth:[^"]+)"', browser.page.text)
    assert match
    uri = html.unescape(match[1])
    assert len(uri) < 240
    assert re.fullmatch(r"otpauth://totp/127.0.0.1:(%E4%B8%80)+\.\.\.\?secret=[A-Z2-7]{32}&issuer=127.0.0.1", uri)


def test_setup_pages_beyond_the_limit_show_the_key_without_a_qr_code(browser: Browser) -> None:
    pages = [browser.get("/account/totp") for _ in range(22)]
    assert {page.status_code for page in pages} == {200}
    assert ["<svg" in page.text for page in pages[:20]] == [True] * 20
    assert 'class="qr"' not in pages[-1].text
    assert len(displayed_secret(browser)) == 32


def test_totp_setup_with_a_wrong_code_fails(browser: Browser, server: Server, login: str) -> None:
    browser.get("/account/totp")
    secret = displayed_secret(browser)
    app = AuthenticatorApp(secret)
    assert browser.submit("/account/totp", otp=app.wrong()).status_code == 422
    assert browser.problem.startswith("This code is incorrect")
    assert displayed_secret(browser) == secret  # the user can retry without scanning again
    with Browser(server) as other:
        assert other.sign_in(login).headers["Location"] == "/account"
    assert browser.submit("/account/totp", otp=app.code()).status_code == 303


def test_totp_setup_long_after_the_sign_in_asks_for_the_password_first(browser: Browser, server: Server) -> None:
    forget_authentication(server)
    assert "otpauth:" not in browser.get("/account/totp").text
    assert browser.submit("/account/totp/confirm", current_password="wrong").status_code == 422
    assert browser.problem == "Your current password is incorrect."
    assert "otpauth:" not in browser.get("/account/totp").text
    browser.follow(browser.submit("/account/totp/confirm", current_password=PASSWORD))
    app = AuthenticatorApp(displayed_secret(browser))
    assert browser.submit("/account/totp", otp=app.code()).status_code == 303


def test_forged_totp_setup_starts_over(browser: Browser) -> None:
    browser.get("/account/totp")
    key_id = browser.form("/account/totp")["setup"].split(".")[1]
    forged = ["", "x", "v1.x.y", "v1." + "0" * 12 + ".AAAA", f"v1.{key_id}.AAAA", f"v2.{key_id}.AAAA", "é", "."]
    for setup in forged:
        answer = browser.submit("/account/totp", setup=setup, otp="000000", current_password=PASSWORD)
        assert answer.headers["Location"] == "/account/totp", setup


def test_totp_setup_of_another_user_starts_over(browser: Browser, server: Server) -> None:
    with fresh_browser(server, new_user(server)) as attacker:
        attacker.get("/account/totp")
        app, setup = AuthenticatorApp(displayed_secret(attacker)), attacker.form("/account/totp")["setup"]
    browser.get("/account/totp")
    answer = browser.submit("/account/totp", setup=setup, otp=app.code(), current_password=PASSWORD)
    assert answer.headers["Location"] == "/account/totp"
    browser.open_account()
    assert "/account/totp/remove" not in browser.page.text


def test_removing_totp_soon_after_the_sign_in_asks_for_nothing(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        browser.submit("/login/code", otp=app.code())
        browser.open_account()
        assert "current_password" not in browser.form("/account/totp/remove")
        assert browser.submit("/account/totp/remove").status_code == 303


def test_removing_totp_long_after_the_sign_in_requires_the_password(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        browser.submit("/login/code", otp=app.code())
        forget_authentication(server)
        browser.open_account()
        token = {"csrf": browser.form("/account/totp/remove")["csrf"]}
        assert browser.post("/account/totp/remove", token).status_code == 422
        code = app.code()
        answer = browser.submit("/account/totp/remove", current_password="wrong", present_otp=code)
        assert answer.status_code == 422
        assert browser.problem == "Your current password is incorrect."
        with Browser(server) as other:
            assert other.sign_in(login).headers["Location"] == "/login/code"
        browser.follow(browser.submit("/account/totp/remove", current_password=PASSWORD, present_otp=code))
        with Browser(server) as other:
            assert other.sign_in(login).headers["Location"] == "/account"


def test_turning_email_codes_on_and_off_requires_the_password(browser: Browser, server: Server, login: str) -> None:
    assert browser.submit("/account/email-2fa", current_password="wrong").status_code == 422
    with Browser(server) as other:
        assert other.sign_in(login).headers["Location"] == "/account"
    browser.follow(browser.submit("/account/email-2fa", current_password=PASSWORD))
    with Browser(server) as other:
        other.follow(other.sign_in(login))
        code = mailed_codes(server, login)[0]
        browser.open_account()
        answer = browser.submit("/account/email-2fa", current_password="wrong", present_otp=code)
        assert answer.status_code == 422
    browser.follow(browser.submit("/account/email-2fa", current_password=PASSWORD, present_otp=code))
    with Browser(server) as other:
        assert other.sign_in(login).headers["Location"] == "/account"


def listed_devices(browser: Browser) -> list[str]:
    """Returns the devices that the page lists."""
    part = browser.open_account().text.partition('class="sessions"')[2].partition("</ul>")[0]
    return [html.unescape(name) for name in re.findall(r"<h3><bdi>(.*?)</bdi>", part)]


def test_sessions_are_listed_with_device_and_address(browser: Browser, server: Server, login: str) -> None:
    with fresh_browser(server, login, headers=FIREFOX) as other:
        assert sorted(listed_devices(browser)) == ["Browser", "Firefox on Linux"]
        assert browser.page.text.count("This browser") == 1
        sessions = browser.page.text.partition('class="sessions"')[2].partition("</ul>")[0]
        assert sessions.count("127.0.0.1") == 2
        assert listed_devices(other)[0] == "Firefox on Linux"  # the current session comes first


def test_session_can_be_ended_from_another_session(browser: Browser, server: Server, login: str) -> None:
    with fresh_browser(server, login) as other, fresh_browser(server, login) as third:
        browser.open_account()
        mine = browser.form("/account/sessions/end")["id"]
        browser.follow(browser.submit("/account/sessions/end"))
        assert browser.notice == "That session has been signed out."
        assert sorted([other.is_signed_in, third.is_signed_in]) == [False, True]
        assert browser.is_signed_in
        assert mine not in browser.page.text
        assert len(listed_devices(browser)) == 2


def test_sign_out_everywhere_else_keeps_this_session(browser: Browser, server: Server, login: str) -> None:
    with (
        fresh_browser(server, login) as other,
        fresh_browser(server, login) as third,
        fresh_browser(server, new_user(server)) as somebody_else,
    ):
        browser.open_account()
        browser.follow(browser.submit("/account/sessions/end-others"))
        assert browser.notice == "You have been signed out everywhere else."
        assert (other.is_signed_in, third.is_signed_in) == (False, False)
        assert browser.is_signed_in
        assert somebody_else.is_signed_in
    assert listed_devices(browser) == ["Browser"]
    assert "/account/sessions/end" not in browser.page.text


def test_session_of_another_user_cannot_be_ended(browser: Browser, server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as first, fresh_browser(server, login) as second:
        first.open_account()
        of_second = first.form("/account/sessions/end")["id"]
        fields = {"csrf": browser.form("/account/password")["csrf"], "id": of_second}
        browser.post("/account/sessions/end", fields)
        assert second.is_signed_in


def test_account_page_contains_no_session_secret(browser: Browser, server: Server, login: str) -> None:
    with fresh_browser(server, login) as other:
        browser.open_account()
        for secret in (browser.cookie(), other.cookie()):
            assert secret
            assert secret not in browser.page.text
        # The id of a session in the list is not its secret.
        other.set_cookie(browser.form("/account/sessions/end")["id"].ljust(43, "A"), SESSION)
        assert not other.is_signed_in
