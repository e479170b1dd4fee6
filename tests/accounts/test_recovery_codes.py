"""Recovery codes: ten codes for single use that replace a lost second factor."""

from collections.abc import Iterator

import pytest

from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.mailbox import wait_for_mails
from tests.kit.second_factors import CODE, codes_left, displayed_secret, enrol
from tests.kit.server import Server

LOGIN = "/proxy/api/login"


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    with fresh_browser(server, login) as browser:
        yield browser


def test_first_factor_comes_with_ten_codes_that_are_shown_and_downloaded_once(
    browser: Browser, server: Server, login: str
) -> None:
    _, codes = enrol(browser)
    assert len(set(codes)) == 10
    assert browser.notice == "Your authenticator app has been set up. You have been signed out everywhere else."
    form = browser.form("/account/recovery-codes/download")
    answer = browser.post("/account/recovery-codes/download", form)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="recovery-codes.txt"'
    assert CODE.findall(answer.text) == codes
    assert login in answer.text
    with fresh_browser(server, new_user(server)) as other:
        other.open_account()
        fields = {"csrf": other.form("/logout")["csrf"], "codes": form["codes"]}
        assert other.post("/account/recovery-codes/download", fields).headers["Location"] == "/account"
    assert not CODE.findall(browser.get(str(browser.page.url)).text)
    assert "10 left" in browser.page.text
    assert not query(server, "SELECT 1 FROM outbox o WHERE o::text LIKE $1", f"%{codes[0]}%")
    assert codes[0] not in server.log()


def test_code_signs_in_once_and_the_user_is_notified(browser: Browser, server: Server, login: str) -> None:
    _, codes = enrol(browser)
    with Browser(server) as other:
        other.follow(other.sign_in(login))
        assert "Lost your phone?" in other.page.text
        assert other.submit("/login/code", otp=codes[0]).status_code == 303
        assert other.is_signed_in
    (text,) = wait_for_mails(server, login, "A recovery code for 127.0.0.1 was used")
    assert "You have 9 recovery codes left." in text
    assert codes[0] not in text
    for written in (codes[0].replace("-", " "), codes[0]):
        with Browser(server) as other:
            other.follow(other.sign_in(login))
            assert other.submit("/login/code", otp=written).status_code == 401
            assert other.problem == "This code is incorrect or has already been used."
    for written in (f" {codes[1]} ", codes[2].replace("-", " "), codes[3].replace("-", "")):
        with Browser(server) as other:
            other.follow(other.sign_in(login))
            assert other.submit("/login/code", otp=written).status_code == 303, written
    assert codes_left(server, login) == 6


def test_code_is_accepted_by_the_login_operation_and_for_changes(browser: Browser, server: Server, login: str) -> None:
    _, codes = enrol(browser)
    stranger = new_user(server, totp_secret=TOTP_SECRET)
    of_another_user = {"login": stranger, "password": PASSWORD, "otp": codes[1]}
    assert browser.http.post(LOGIN, json=of_another_user).status_code == 401
    body = {"login": login, "password": PASSWORD, "otp": codes[1]}
    assert browser.http.post(LOGIN, json=body).status_code == 200
    assert browser.http.post(LOGIN, json=body).status_code == 401
    browser.open_account()
    browser.follow(browser.submit("/account/totp/remove", current_password=PASSWORD, present_otp=codes[2]))
    assert browser.notice.startswith("The authenticator app has been removed.")
    assert codes_left(server, login) == 0  # codes go with the last factor
    with Browser(server) as other:
        assert other.sign_in(login).headers["Location"] == "/account"


def test_new_codes_require_a_recent_authentication_and_replace_the_old_ones(
    browser: Browser, server: Server, login: str
) -> None:
    app, old = enrol(browser)
    query(server, "UPDATE browser_sessions SET authenticated = authenticated - interval '601 s'")
    browser.open_account()
    form = browser.form("/account/recovery-codes")
    assert browser.post("/account/recovery-codes", {"csrf": form["csrf"]}).status_code == 422
    for wrong in ({"current_password": "wrong", "present_otp": old[0]}, {"current_password": PASSWORD}):
        assert browser.submit("/account/recovery-codes", **wrong).status_code == 422
    assert codes_left(server, login) == 10
    proof = {"current_password": PASSWORD, "present_otp": app.code()}
    answer = browser.submit("/account/recovery-codes", **proof)
    assert answer.headers["Location"].startswith("/account?done=recovery")
    browser.follow(answer)
    new = CODE.findall(browser.page.text)
    assert len(set(new) - set(old)) == 10
    body = {"login": login, "password": PASSWORD}
    assert browser.http.post(LOGIN, json=body | {"otp": old[0]}).status_code == 401
    assert browser.http.post(LOGIN, json=body | {"otp": new[0]}).status_code == 200
    (text,) = wait_for_mails(server, login, "New recovery codes for 127.0.0.1")
    assert "The old ones no longer work." in text
    browser.open_account()
    assert browser.submit("/account/recovery-codes").status_code == 303  # recent again


def test_password_change_is_no_recent_authentication_with_a_second_factor(
    browser: Browser, server: Server, login: str
) -> None:
    enrol(browser)
    query(server, "UPDATE browser_sessions SET authenticated = NULL")
    browser.open_account()
    new = {"new_password": "a longer and better one", "repeat_password": "a longer and better one"}
    assert browser.submit("/account/password", current_password=PASSWORD, **new).status_code == 303
    browser.open_account()
    assert browser.post("/account/recovery-codes", browser.form("/logout")).status_code == 422


def test_second_factor_that_is_not_the_first_makes_no_new_codes(browser: Browser, server: Server, login: str) -> None:
    _, codes = enrol(browser)
    browser.open_account()
    answer = browser.submit("/account/email-2fa", current_password=PASSWORD, present_otp=codes[0])
    assert answer.headers["Location"] == "/account?done=email-2fa#two-step"
    assert codes_left(server, login) == 9


def test_twenty_wrong_codes_block_recovery_codes_too(browser: Browser, server: Server, login: str) -> None:
    _, codes = enrol(browser)
    block = "INSERT INTO factor_guesses (user_id, factor, attempts) SELECT user_id, $2, 19 FROM users WHERE login = $1"
    query(server, block, login, "recovery")
    body = {"login": login, "password": PASSWORD}
    with server.client() as client:
        assert client.post(LOGIN, json=body | {"otp": "0000-0000-0000"}).status_code == 401
        query(server, "DELETE FROM throttle")
        assert client.post(LOGIN, json=body | {"otp": codes[0]}).status_code == 403
    assert codes_left(server, login) == 10


def test_recovery_code_unblocks_the_other_factors(browser: Browser, server: Server, login: str) -> None:
    app, codes = enrol(browser)
    block = "INSERT INTO factor_guesses (user_id, factor, attempts) SELECT user_id, $2, 20 FROM users WHERE login = $1"
    query(server, block, login, "totp")
    body = {"login": login, "password": PASSWORD}
    with server.client() as client:
        assert client.post(LOGIN, json=body | {"otp": app.code()}).status_code == 403
        assert client.post(LOGIN, json=body | {"otp": codes[0]}).status_code == 200
        assert client.post(LOGIN, json=body | {"otp": app.code()}).status_code == 200


def test_code_of_the_setup_is_explained_when_it_is_used_again(browser: Browser, server: Server, login: str) -> None:
    browser.get("/account/totp")
    code = AuthenticatorApp(displayed_secret(browser)).code()
    browser.submit("/account/totp", otp=code, current_password=PASSWORD)
    with Browser(server) as other:
        other.follow(other.sign_in(login))
        assert other.submit("/login/code", otp=code).status_code == 401
        assert other.problem.startswith("You have already used this code.")
