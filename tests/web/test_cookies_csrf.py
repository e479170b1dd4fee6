"""What a browser brings is believed only if it comes from a page of ours: every form, over the wire."""

from collections.abc import Iterator

import httpx
import pytest

from sso.app import build_app
from sso.health import Health
from sso.metrics import Metrics
from sso.services import Services
from sso.web.csrf import csrf_token
from sso.web.error_format import ErrorFormat, error_format_for
from sso.web.redirects import safe_next
from tests.kit.browser import VISIT, App, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game
from tests.kit.server import Server

NEW = "another one, longer"
SIGN_INS = "SELECT s.id, s.ended FROM sign_ins s JOIN users u USING (user_id) WHERE u.login = $1"
# What would happen if the form were believed.
SIGNED_IN = {
    "/account/password": {"current_password": PASSWORD, "new_password": NEW, "repeat_password": NEW},
    "/account/totp": {"current_password": PASSWORD, "otp": "000000", "setup": "x"},
    "/account/totp/code": {"setup": "x"},
    "/account/totp/remove": {"current_password": PASSWORD},
    "/account/code": {"form": "totp"},
    "/account/email-2fa": {"current_password": PASSWORD, "enable": "1"},
    "/account/sessions/end": {"id": "{other}"},
    "/account/games/end": {"ids": "{sign_in}"},
    "/account/sites/remove": {"client_id": "shop"},
    "/account/sessions/end-others": {},
    "/game/<gsid>/continue": {},
    "/game/<gsid>/deny": {},
    "/logout": {},
}
NOT_YET = {
    "/login": {"login": "{login}", "password": PASSWORD},
    "/login/code": {"otp": "{otp}"},
    "/login/code/resend": {},
}
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
BAD = [*TOKENS, *HEADERS]


def send(browser: Browser, action: str, fields: dict[str, str], token: str, bad: str) -> httpx.Response:
    """The form as it should be but for one thing."""
    headers = {"Origin": browser.server.base_url, "Sec-Fetch-Site": "same-origin"}
    headers |= {name: value.format(base=browser.server.base_url) for name, value in HEADERS.get(bad, {}).items()}
    sent = TOKENS.get(bad, token)
    params = {"csrf": token} if bad == "token in the address" else None
    return browser.http.post(
        action, data=fields | ({} if sent is None else {"csrf": sent}), params=params, headers=headers
    )


# Consent and sign-out at a site's request, tried where OAuth is.
WITH_THEIR_OWN_TESTS = {"/proxy/oauth/authorize/<request_id>", "/proxy/oauth/logout"}


async def test_every_form_of_the_service_is_tried_here(services: Services) -> None:
    app = build_app(services, Health(), Metrics(False))
    forms = {
        rule.rule
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and error_format_for(rule.rule) is ErrorFormat.PAGE
    }
    assert forms == SIGNED_IN.keys() | NOT_YET.keys() | WITH_THEIR_OWN_TESTS


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("action", SIGNED_IN)
def test_a_form_that_is_not_ours_changes_nothing(person: "Person", action: str, bad: str) -> None:
    before = person.state()
    fields = {
        name: value.format(other=person.other_id, sign_in=person.sign_in_id)
        for name, value in SIGNED_IN[action].items()
    }
    token = csrf_token(person.browser.cookie() or "")
    assert_refused(send(person.browser, action.replace("<gsid>", person.gsid), fields, token, bad))
    assert person.state() == before


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("action", NOT_YET)
def test_a_sign_in_that_is_not_ours_is_none(server: Server, action: str, bad: str) -> None:
    """Else a site could sign its visitor in as somebody else, and look on at what they do then."""
    app = App(TOTP_SECRET)
    with Browser(server) as browser:
        if action == "/login":
            login = new_user(server)
            browser.get("/login")
        else:
            login = new_user(server, totp_secret=TOTP_SECRET)
            browser.follow(browser.sign_in(login))
        fields = {name: value.format(login=login, otp=app.code()) for name, value in NOT_YET[action].items()}
        token = csrf_token(browser.cookie(VISIT) or "")
        assert_refused(send(browser, action, fields, token, bad))
        assert browser.cookie() is None
        assert not browser.is_signed_in
        # The form itself was right.
        good = browser.post(action, fields | {"csrf": token})
        assert good.status_code == (200 if action == "/login/code/resend" else 303)


def assert_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 403
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "This form has expired or was not sent from our page." in answer.text
    assert "Set-Cookie" not in answer.headers


class Person:
    """Somebody with two sessions and a game that waits, and everything a form could change about them."""

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
        sql = "SELECT password_hash, totp_sealed, email_2fa, valid_from FROM users WHERE login = $1"
        own = query(self.server, sql, self.login), self.browser.is_signed_in, self.other.is_signed_in
        game = query(self.server, "SELECT status, user_id FROM game_sessions WHERE gsid = $1", self.gsid)
        return own, game, query(self.server, SIGN_INS, self.login)


@pytest.fixture(scope="module")
def person(server: Server) -> Iterator[Person]:
    person = Person(server)
    yield person
    for browser in (person.browser, person.other):
        browser.http.close()


def test_a_browser_that_says_nothing_of_itself_is_judged_by_the_token(server: Server) -> None:
    login = new_user(server)
    with Browser(server) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": login, "password": PASSWORD}
        assert browser.http.post("/login", data=fields).status_code == 303


def test_a_form_opened_by_the_user_themselves_is_ours(server: Server) -> None:
    with Browser(server) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": new_user(server), "password": PASSWORD}
        assert browser.post("/login", fields, Sec_Fetch_Site="none").status_code == 303


def test_the_page_may_be_opened_under_another_name_of_the_host(server: Server) -> None:
    with Browser(server, headers={"Host": "localhost:8000"}) as browser:
        browser.get("/login")
        fields = browser.form("/login") | {"login": new_user(server), "password": PASSWORD}
        assert browser.post("/login", fields, Origin="http://localhost:8000").status_code == 303


def test_the_token_is_not_the_cookie(server: Server) -> None:
    with Browser(server) as browser:
        browser.get("/login")
        secret = browser.cookie(VISIT) or ""
        assert secret not in browser.page.text
        assert browser.form("/login")["csrf"] == csrf_token(secret)


@pytest.mark.parametrize("origin", ["https://evil.example", None])
def test_a_form_of_another_site_takes_no_cookie_away(server: Server, origin: str | None) -> None:
    """Browsers send it without our cookies, but would take what the answer says of them."""
    with server.client() as client:
        for action in SIGNED_IN | NOT_YET:
            answer = client.post(action, headers={"Origin": origin} if origin else {})
            assert answer.status_code in (303, 403)
            assert "Set-Cookie" not in answer.headers


def test_answers_to_passwords_are_never_sent_on(server: Server) -> None:
    """307 and 308 would make the browser send the form, password and all, to wherever they lead."""
    with Browser(server) as browser:
        for path in ("/login", "//login", "/login/", "/account", "/account/", "/account/password/", "/%2Flogin"):
            answer = browser.post(path, {"login": "a", "password": PASSWORD})
            assert answer.status_code in (303, 403, 404, 405), path


@pytest.mark.parametrize(
    "text",
    [
        "/",
        "/account",
        "/a/b?c=d&e=%2F",
        "/?gsid=1",
        "/proxy/oauth/authorize?redirect_uri=https%3A%2F%2Fa.example%2F",
        "/a//b",
    ],
)
def test_a_path_of_ours_is_where_next_leads(text: str) -> None:
    assert safe_next(text) == text


@pytest.mark.parametrize(
    "text",
    [
        None, 5, b"/account", ["/account"], "", "//", "//evil", "/\\", "/\\/evil", "\\evil", "/%2F", "/%2fevil", "/%5c",
        "/%5Cevil", "/\x00", "/\n", "/account\n", "/account\r\nA: b", "/ ", "/a b", "/<", '/"', "/'", "/é",
        "/\u2044evil", "/\uff0fevil", "https://a", "http:a", "javascript:1", "/" + "a" * 4096,
    ],
)  # fmt: skip
def test_anything_else_leads_to_the_account(text: object) -> None:
    assert safe_next(text) == "/account"
