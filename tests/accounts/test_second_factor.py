"""The second factor of a login with a browser: codes of an authenticator app and codes by e-mail."""

import re
import time
from collections.abc import Iterator

import pyotp
import pytest

from tests.kit.browser import SESSION, VISIT, AuthenticatorApp, Browser, mailed_codes, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server

NEXT_MAIL = re.compile(r"You can ask for another e-mail in \d+ seconds?\.")


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    with Browser(server) as browser:
        yield browser


@pytest.fixture
def app() -> AuthenticatorApp:
    return AuthenticatorApp(TOTP_SECRET)


def ask(browser: Browser, login: str, **fields: str) -> None:
    """Sends the correct password and opens the page that asks for the code."""
    answer = browser.sign_in(login, **fields)
    assert answer.headers["Location"].partition("?")[0] == "/login/code"
    assert browser.follow(answer).status_code == 200


def test_password_does_not_sign_in_before_the_totp_code(
    browser: Browser, server: Server, app: AuthenticatorApp
) -> None:
    ask(browser, new_user(server, totp_secret=TOTP_SECRET), next="/account/totp")
    assert not browser.is_signed_in
    assert browser.cookie() is None
    answer = browser.submit("/login/code", otp=app.code())
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/account/totp"
    assert browser.is_signed_in


def test_wrong_code_is_rejected_and_can_be_retried(browser: Browser, server: Server, app: AuthenticatorApp) -> None:
    ask(browser, new_user(server, totp_secret=TOTP_SECRET), next="/account/totp")
    past, future = (pyotp.TOTP(TOTP_SECRET).at(int(time.time()) + steps * 30) for steps in (-3, 3))
    wrong = [app.wrong(), "", "12345", "1234567", "abcdef", "１２３４５６", "-12345", "0x1234", "x" * 9000]
    for otp in (*wrong, past, future):
        query(server, "DELETE FROM throttle")  # ends the block of the account
        assert browser.submit("/login/code", otp=otp).status_code == 401, otp[:20]
        assert browser.problem == "This code is incorrect or has already been used."
        assert browser.cookie() is None
    query(server, "DELETE FROM throttle")
    code = app.code()
    answer = browser.submit("/login/code", otp=f" {code[:3]} {code[3:]} ")
    assert answer.headers["Location"] == "/account/totp"


def test_totp_code_works_once(browser: Browser, server: Server, app: AuthenticatorApp) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    code = app.code()
    ask(browser, login)
    assert browser.submit("/login/code", otp=code).status_code == 303
    with Browser(server) as other:
        ask(other, login)
        assert other.submit("/login/code", otp=code).status_code == 401
        # The login operation rejects the code as well.
        api = {"login": login, "password": PASSWORD, "otp": code}
        assert other.http.post("/proxy/api/login", json=api).status_code == 401
        assert other.submit("/login/code", otp=app.code()).status_code == 303


def test_totp_code_older_than_the_last_used_one_is_rejected(
    browser: Browser, server: Server, app: AuthenticatorApp
) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    older, newer = app.code(), app.code()
    ask(browser, login)
    assert browser.submit("/login/code", otp=newer).status_code == 303
    with Browser(server) as other:
        ask(other, login)
        assert other.submit("/login/code", otp=older).status_code == 401


def test_totp_code_of_another_user_is_rejected(browser: Browser, server: Server) -> None:
    ask(browser, new_user(server, totp_secret="A" * 32))
    assert browser.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).code()).status_code == 401


def test_code_is_accepted_only_from_the_browser_that_sent_the_password(
    browser: Browser, server: Server, app: AuthenticatorApp
) -> None:
    ask(browser, new_user(server, totp_secret=TOTP_SECRET))
    form = browser.form("/login/code")
    with Browser(server) as other:
        assert other.get("/login/code").headers["Location"] == "/login"
        other.get("/login")
        assert other.post("/login/code", form | {"otp": app.code()}).status_code == 403
        own = {"csrf": other.form("/login")["csrf"], "otp": app.code()}
        assert other.post("/login/code", own).status_code == 401
        assert not other.is_signed_in


def test_login_challenge_works_once(browser: Browser, server: Server, app: AuthenticatorApp) -> None:
    browser.set_cookie("A" * 43, SESSION)  # the browser may have an invalid session cookie
    ask(browser, new_user(server, totp_secret=TOTP_SECRET))
    challenge = browser.cookie(VISIT) or ""
    assert browser.submit("/login/code", otp=app.code()).status_code == 303
    with Browser(server) as other:
        other.set_cookie(challenge, VISIT)
        assert other.get("/login/code").headers["Location"] == "/login"


def test_login_challenge_expires_after_ten_minutes(browser: Browser, server: Server, app: AuthenticatorApp) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    ask(browser, login)
    late = "UPDATE login_challenges c SET expires = expires - interval '600 s' FROM users u"
    query(server, f"{late} WHERE c.user_id = u.user_id AND u.login = $1", login)
    answer = browser.submit("/login/code", otp=app.code())
    assert answer.status_code == 401
    assert browser.problem == "This sign-in has expired. Please sign in again."
    assert browser.submit("/login", login=login, password=PASSWORD).status_code == 303


def test_login_challenge_that_has_ended_leads_to_the_sign_in_with_its_next_path(
    browser: Browser, server: Server
) -> None:
    login = new_user(server, email_2fa=True)
    browser.get("/login?next=/account/history")
    browser.follow(browser.submit("/login", login=login, password=PASSWORD))
    query(server, "DELETE FROM login_challenges")
    for answer in (browser.submit("/login/code/resend"), browser.get("/login/code?next=/account/history")):
        assert answer.headers["Location"] == "/login?next=/account/history"


def test_another_account_can_be_used_instead(browser: Browser, server: Server) -> None:
    ask(browser, new_user(server, totp_secret=TOTP_SECRET))
    challenge = browser.cookie(VISIT) or ""
    assert browser.submit("/logout").headers["Location"] == "/login"
    assert browser.cookie(VISIT) is None
    browser.set_cookie(challenge, VISIT)
    assert browser.get("/login/code").headers["Location"] == "/login"
    assert browser.sign_in(new_user(server)).headers["Location"] == "/account"


def test_email_code_signs_in_once(browser: Browser, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    ask(browser, login)
    (code,) = mailed_codes(server, login)
    assert browser.submit("/login/code", otp=code).status_code == 303
    assert browser.is_signed_in
    with Browser(server) as other:
        ask(other, login)
        assert other.submit("/login/code", otp=code).status_code == 401
        assert other.submit("/login/code", otp=mailed_codes(server, login, 2)[1]).status_code == 303


def test_email_code_is_resent_only_after_a_minute(browser: Browser, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    ask(browser, login)
    assert NEXT_MAIL.search(browser.page.text)  # the page after the password says when the next mail can be sent
    answer = browser.submit("/login/code/resend")
    assert (answer.status_code, browser.notice) == (429, "")
    assert NEXT_MAIL.fullmatch(browser.problem)
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert len(mailed_codes(server, login)) == 1
    minute = "UPDATE email_codes c SET sent = sent - interval '61 s' FROM users u"
    query(server, f"{minute} WHERE c.user_id = u.user_id AND u.login = $1", login)
    assert not NEXT_MAIL.search(browser.get("/login/code").text)
    assert browser.submit("/login/code/resend").status_code == 200
    assert browser.notice == "We have sent you a code. Check your e-mail."
    old, new = mailed_codes(server, login, 2)
    assert old == new or browser.submit("/login/code", otp=old).status_code == 401
    assert browser.submit("/login/code", otp=new).status_code == 303


def test_account_page_says_when_the_next_code_can_be_sent(browser: Browser, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    ask(browser, login)
    browser.submit("/login/code", otp=mailed_codes(server, login)[0])
    browser.get("/account")
    fields = {"csrf": browser.form("/account/email-2fa")["csrf"], "form": "email_2fa"}
    browser.page = browser.post("/account/code", fields)
    assert (browser.notice, browser.problem) == ("We have sent you a code. Check your e-mail.", "")
    browser.page = browser.post("/account/code", fields)
    assert (browser.page.status_code, browser.notice) == (429, "")
    assert NEXT_MAIL.fullmatch(browser.problem)
    assert len(mailed_codes(server, login, 2)) == 2


def test_email_code_expires_after_ten_minutes(browser: Browser, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    ask(browser, login)
    (code,) = mailed_codes(server, login)
    late = "UPDATE email_codes c SET expires = expires - interval '600 s' FROM users u"
    query(server, f"{late} WHERE c.user_id = u.user_id AND u.login = $1", login)
    assert browser.submit("/login/code", otp=code).status_code == 401


def test_user_without_email_codes_is_sent_none(browser: Browser, server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    ask(browser, login)
    assert "/login/code/resend" not in browser.page.text
    browser.page = browser.post("/login/code/resend", browser.form("/login/code"))
    assert browser.notice == ""
    codes = "SELECT count(*) AS count FROM email_codes JOIN users USING (user_id) WHERE login = $1"
    assert query(server, codes, login)[0]["count"] == 0
    assert query(server, "SELECT count(*) AS count FROM outbox WHERE recipient = $1", login)[0]["count"] == 0


@pytest.mark.parametrize("way", ["app", "mail"])
def test_either_code_signs_in_if_both_factors_are_on(
    browser: Browser, server: Server, app: AuthenticatorApp, way: str
) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET, email_2fa=True)
    ask(browser, login)
    code = app.code() if way == "app" else mailed_codes(server, login)[0]
    assert browser.submit("/login/code", otp=code).status_code == 303


def test_email_code_is_sent_to_its_user_only(browser: Browser, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    ask(browser, login)
    (code,) = mailed_codes(server, login)
    assert code not in server.log()
    assert not query(server, "SELECT 1 FROM outbox o WHERE o::text LIKE $1", f"%{code}%")
    for path in (server.folder / "data" / "mail").glob("*.eml"):
        assert path.stat().st_mode & 0o077 == 0
