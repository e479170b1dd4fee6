"""Twenty wrong codes in a row block a second factor until an operator unblocks it; the user is notified by mail."""

from email import message_from_string
from email.policy import default

import orjson
import pytest

from tests.kit.browser import AuthenticatorApp, Browser, mail_text, mailed_codes, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server, until

LOGIN = "/proxy/api/login"
MAX_ATTEMPTS = 20
BLOCKED = "Too many wrong codes were entered, so this account no longer accepts codes. Ask support to unblock it."


def end_waits(server: Server) -> None:
    query(server, "DELETE FROM throttle")


def notices(server: Server, login: str) -> list[str]:
    """Returns the bodies of the mails about a block, for one recipient."""
    mails = [
        message_from_string(path.read_text(), policy=default) for path in (server.folder / "data" / "mail").glob("*")
    ]
    return [
        mail_text(mail) for mail in mails if mail["To"] == login and "code" not in mail["Subject"].partition(" ")[2]
    ]


def send_wrong_codes(server: Server, login: str, count: int) -> list[int]:
    statuses = []
    with server.client() as client:
        for _ in range(count):
            end_waits(server)
            body = {"login": login, "password": PASSWORD, "otp": AuthenticatorApp(TOTP_SECRET).wrong()}
            statuses.append(client.post(LOGIN, json=body).status_code)
    return statuses


def test_twenty_wrong_codes_block_totp_on_pages_and_the_login_operation(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    assert send_wrong_codes(server, login, MAX_ATTEMPTS + 1) == [401] * MAX_ATTEMPTS + [403]
    end_waits(server)
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.submit("/login/code", otp=app.code()).status_code == 403
        assert browser.problem == BLOCKED
        answer = browser.http.post(LOGIN, json={"login": login, "password": PASSWORD, "otp": app.code()})
    assert answer.status_code == 403
    assert answer.json()["error"] == "second factor blocked after too many wrong codes; an operator must unblock it"
    assert until(lambda: len(notices(server, login))) == 1


def test_user_is_notified_of_a_blocked_factor_in_their_language(server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET, lang="de")
    send_wrong_codes(server, login, MAX_ATTEMPTS)
    assert until(lambda: len(notices(server, login))) == 1
    assert "20 falsche Codes" in notices(server, login)[0]


def test_correct_code_resets_the_count(server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    assert send_wrong_codes(server, login, MAX_ATTEMPTS - 1) == [401] * (MAX_ATTEMPTS - 1)
    end_waits(server)
    with server.client() as client:
        body = {"login": login, "password": PASSWORD, "otp": app.code()}
        assert client.post(LOGIN, json=body).status_code == 200
    assert send_wrong_codes(server, login, 2) == [401, 401]
    assert notices(server, login) == []


def test_blocked_email_factor_sends_no_codes(server: Server) -> None:
    login = new_user(server, email_2fa=True)
    with server.client() as client:
        client.post(LOGIN, json={"login": login, "password": PASSWORD})
        assert len(mailed_codes(server, login)) == 1
        send_wrong_codes(server, login, MAX_ATTEMPTS)
        end_waits(server)
        query(server, "DELETE FROM email_codes")
        asked = client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()
        assert asked == {"status": "ERROR", "error": "otp required", "otp": ["email"], "email_sent": False}
        assert until(lambda: len(notices(server, login))) == 1
        assert len(mailed_codes(server, login)) == 1
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        assert browser.problem == BLOCKED
        assert "We sent a code" not in browser.page.text
        assert browser.submit("/login/code/resend").status_code == 403
        assert (browser.problem, browser.notice) == (BLOCKED, "")


@pytest.mark.parametrize("verb", ["unblock-2fa", "reset-2fa"])
def test_operator_unblocks_the_factor(server: Server, verb: str) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    send_wrong_codes(server, login, MAX_ATTEMPTS)
    end_waits(server)
    assert orjson.loads(server.sso("user", "show", login).stdout)["blocked_factors"] == ["totp"]
    server.sso("user", verb, login)
    assert "blocked_factors" not in orjson.loads(server.sso("user", "show", login).stdout)
    with server.client() as client:
        body = {"login": login, "password": PASSWORD, "otp": app.code()}
        assert client.post(LOGIN, json=body).status_code == 200
