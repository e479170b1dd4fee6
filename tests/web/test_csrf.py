"""Every form is refused unless one of our pages sent it: token, Origin and Sec-Fetch-Site, over HTTP."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import httpx
import pytest

from scripts.reference_tables.route_limits import offline_services
from sso.app import build_app
from sso.health import Health
from sso.telemetry.metrics import Metrics
from sso.web.csrf import csrf_token
from sso.web.error_format import ErrorFormat, error_format_for
from tests.kit.browser import VISIT, AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game
from tests.kit.long_tests import usual_part
from tests.kit.server import Server

NEW = "another one, longer"
SIGN_INS = "SELECT s.id, s.ended FROM sign_ins s JOIN users u USING (user_id) WHERE u.login = $1"
# Forms of signed-in users, with fields that would change something.
SIGNED_IN = {
    "/account/password": {"current_password": PASSWORD, "new_password": NEW, "repeat_password": NEW},
    "/account/totp": {"current_password": PASSWORD, "otp": "000000", "setup": "x"},
    "/account/totp/code": {},
    "/account/totp/confirm": {"current_password": PASSWORD},
    "/account/totp/remove": {"current_password": PASSWORD},
    "/account/code": {"form": "totp"},
    "/account/email-2fa": {"current_password": PASSWORD, "enable": "1"},
    "/account/email": {"new_email": "thief@example.com"},
    "/account/email/verify": {},
    "/account/email/cancel": {},
    "/account/email/undo": {"current_password": PASSWORD, "present_otp": "123456"},
    "/account/email/notices": {"enable": "0"},
    "/account/sessions/end": {"id": "{other}"},
    "/account/games/end": {"ids": "{sign_in}"},
    "/account/sites/remove": {"client_id": "shop"},
    "/account/sessions/end-others": {},
    "/account/profile": {"nick": "Thief", "lang": "de", "country": "DE"},
    "/account/terms": {"accept_terms": "1"},
    "/account/passkeys": {"credential": "{{}}", "name": "Thief's"},
    "/account/passkeys/rename": {"id": "1", "name": "Thief's"},
    "/account/passkeys/remove": {"id": "1"},
    "/account/recovery-codes": {"current_password": PASSWORD},
    "/account/recovery-codes/download": {},
    "/account/identities/link": {"provider": "steam", "current_password": PASSWORD},
    "/account/identities/unlink": {"provider": "steam", "current_password": PASSWORD},
    "/account/keys/remove": {"id": "x", "current_password": PASSWORD},
    "/login/identity/conflict/move": {},
    "/login/identity/conflict/merge": {},
    "/account/export": {"current_password": PASSWORD},
    "/account/delete": {"current_password": PASSWORD},
    "/game/<gsid>/continue": {},
    "/game/<gsid>/deny": {},
    "/logout": {},
}
BEFORE_SIGN_IN = {
    "/login": {"login": "{login}", "password": PASSWORD},
    "/login/code": {"otp": "{otp}"},
    "/login/code/resend": {},
}
# Forms that need more than a visit to be accepted: a passkey, a mailed link, an identity of another provider.
AFTER_ANOTHER_STEP = (
    "/login/passkey",
    "/login/code/passkey",
    "/login/keep",
    "/login/identity/create",
    "/login/identity/link",
    "/register",
    "/register/code",
    "/register/complete",
    "/device",
)
TOKENS = {
    "no token": None,
    "token in the address": None,
    "empty token": "",
    "token of another session": csrf_token("A" * 43),
    "token of no session": csrf_token(""),
}
HEADERS = {
    "Origin of another site": {"Origin": "https://evil.example"},
    "Origin of a neighbour": {"Origin": "{base}.evil.example"},
    "Origin with another port": {"Origin": "http://127.0.0.1:1"},
    "Origin null": {"Origin": "null"},
    "Sec-Fetch-Site cross-site": {"Sec-Fetch-Site": "cross-site"},
    "Sec-Fetch-Site same-site": {"Sec-Fetch-Site": "same-site"},
    "Sec-Fetch-Site nonsense": {"Sec-Fetch-Site": "nonsense"},
}
# Any four that follow each other have a wrong token and a wrong header.
DEFECTS = [defect for pair in zip_longest(TOKENS, HEADERS) for defect in pair if defect]


def defects(number: int) -> Sequence[str]:
    """Returns four defects for a form in a usual run, other ones for the next form."""
    return usual_part(DEFECTS, 4, number)


def send(browser: Browser, action: str, fields: dict[str, str], token: str, defect: str) -> httpx.Response:
    """Sends a valid form with one defect."""
    headers = {"Origin": browser.server.base_url, "Sec-Fetch-Site": "same-origin"}
    headers |= {name: value.format(base=browser.server.base_url) for name, value in HEADERS.get(defect, {}).items()}
    sent = TOKENS.get(defect, token)
    params = {"csrf": token} if defect == "token in the address" else None
    return browser.http.post(
        action, data=fields | ({} if sent is None else {"csrf": sent}), params=params, headers=headers
    )


# Consent and sign-out, which the OAuth tests cover, and the pages of links in mails, which have tests of their own.
TESTED_ELSEWHERE = {"/proxy/oauth/authorize/<request_id>", "/proxy/oauth/logout"}
TESTED_ELSEWHERE |= {"/proxy/oauth/authorize"}  # of another site: it redirects to GET
TESTED_ELSEWHERE |= {"/impersonate", "/account/impersonation/end"}
TESTED_ELSEWHERE |= {"/forgot", "/reset", "/email/verify", "/email/change", "/email/undo"}


def test_list_of_forms_is_complete() -> None:
    app = build_app(offline_services(), Health(), Metrics())
    forms = {
        rule.rule
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ())
        and error_format_for(rule.rule) is ErrorFormat.PAGE
        and not rule.rule.startswith("/console")  # tests/console/test_rights.py
    }
    assert forms == SIGNED_IN.keys() | BEFORE_SIGN_IN.keys() | {*AFTER_ANOTHER_STEP} | TESTED_ELSEWHERE


def test_forged_form_changes_nothing(user: "SignedInUser") -> None:
    before = user.state()
    token = csrf_token(user.browser.cookie() or "")
    for number, (action, values) in enumerate(SIGNED_IN.items()):
        fields = {name: value.format(other=user.other_id, sign_in=user.sign_in_id) for name, value in values.items()}
        for defect in defects(number):
            response = send(user.browser, action.replace("<gsid>", user.gsid), fields, token, defect)
            assert_refused(response, f"{action}: {defect}")
    assert user.state() == before


@pytest.mark.parametrize("action", BEFORE_SIGN_IN)
def test_forged_sign_in_is_refused(server: Server, action: str) -> None:
    """Otherwise a site could sign its visitor in to an account of the attacker, and watch what happens there."""
    app = AuthenticatorApp(TOTP_SECRET)
    with Browser(server) as browser:
        if action == "/login":
            login = new_user(server)
            browser.get("/login")
        else:
            login = new_user(server, totp_secret=TOTP_SECRET)
            browser.follow(browser.sign_in(login))
        fields = {name: value.format(login=login, otp=app.code()) for name, value in BEFORE_SIGN_IN[action].items()}
        token = csrf_token(browser.cookie(VISIT) or "")
        for defect in DEFECTS:
            assert_refused(send(browser, action, fields, token, defect), defect)
            assert browser.cookie() is None, defect
        assert not browser.is_signed_in
        # Without the defect, the same form is accepted.
        accepted = browser.post(action, fields | {"csrf": token})
        assert accepted.status_code == (200 if action == "/login/code/resend" else 303)


def test_forged_form_starts_no_session(server: Server) -> None:
    fields = {"credential": "{}", "login": "ann@example.com", "code": "123456", "nick": "Ann", "new_password": NEW}
    with Browser(server) as browser:
        browser.get("/login")
        for number, action in enumerate(AFTER_ANOTHER_STEP):
            for defect in defects(number):
                response = send(browser, action, fields, csrf_token(browser.cookie(VISIT) or ""), defect)
                assert response.status_code in (303, 403), (action, defect)
                assert browser.cookie() is None, (action, defect)
        assert not browser.is_signed_in


def assert_refused(response: httpx.Response, defect: str) -> None:
    assert response.status_code == 403, defect
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "This form has expired or was not sent from our page." in response.text
    assert "Set-Cookie" not in response.headers


class SignedInUser:
    """A user with two sessions and a waiting game, and everything that a form could change."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.login = new_user(server)
        self.browser, self.other = fresh_browser(server, self.login), fresh_browser(server, self.login)
        self.browser.open_account()
        self.other_id = self.browser.form("/account/sessions/end")["id"]
        with Game(server) as game:
            self.gsid = game.register().gsid
        with server.client() as client:
            credentials = {"login": self.login, "password": PASSWORD}
            assert client.post("/proxy/api/login", json=credentials).status_code == 200
        [[self.sign_in_id, _]] = query(server, SIGN_INS, self.login)

    def state(self) -> object:
        sql = """SELECT password_hash, nick, lang, country, totp_sealed, email_2fa, valid_from, sign_in_notices,
            deletion_due FROM users WHERE login = $1"""
        own = query(self.server, sql, self.login), self.browser.is_signed_in, self.other.is_signed_in
        game = query(self.server, "SELECT status, user_id FROM game_sessions WHERE gsid = $1", self.gsid)
        links = query(
            self.server, "SELECT l.* FROM mailed_links l JOIN users USING (user_id) WHERE login = $1", self.login
        )
        return own, game, links, query(self.server, SIGN_INS, self.login)


@pytest.fixture(scope="module")
def user(server: Server) -> Iterator[SignedInUser]:
    user = SignedInUser(server)
    yield user
    for browser in (user.browser, user.other):
        browser.http.close()


def test_form_without_origin_headers_is_accepted_by_its_token(server: Server) -> None:
    login = new_user(server)
    with Browser(server) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": login, "password": PASSWORD}
        assert browser.http.post("/login", data=fields).status_code == 303


def test_sec_fetch_site_none_is_accepted(server: Server) -> None:
    with Browser(server) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": new_user(server), "password": PASSWORD}
        assert browser.post("/login", fields, Sec_Fetch_Site="none").status_code == 303


def test_origin_of_another_name_of_the_host_is_accepted(server: Server) -> None:
    with Browser(server, headers={"Host": "localhost:8000"}) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": new_user(server), "password": PASSWORD}
        assert browser.post("/login", fields, Origin="http://localhost:8000").status_code == 303


def test_token_does_not_reveal_the_cookie(server: Server) -> None:
    with Browser(server) as browser:
        browser.get("/login")
        secret = browser.cookie(VISIT) or ""
        assert secret not in browser.page.text
        assert browser.form("/login")["csrf"] == csrf_token(secret)


def test_form_of_another_site_deletes_no_cookie(server: Server) -> None:
    """Browsers send it without our cookies, but would obey a Set-Cookie header of the response."""
    with server.client() as client:
        for number, action in enumerate(SIGNED_IN | BEFORE_SIGN_IN):
            response = client.post(action, headers={"Origin": "https://evil.example"} if number % 2 else {})
            assert response.status_code in (303, 403)
            assert "Set-Cookie" not in response.headers


def test_forms_are_never_redirected_with_307_or_308(server: Server) -> None:
    """They would make the browser send the form, including the password, to the target."""
    with Browser(server) as browser:
        for path in ("/login", "//login", "/login/", "/account", "/account/", "/account/password/", "/%2Flogin"):
            response = browser.post(path, {"login": "a", "password": PASSWORD})
            assert response.status_code in (303, 403, 404, 405), path
