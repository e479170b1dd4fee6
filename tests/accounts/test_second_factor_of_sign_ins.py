"""SSO_REQUIRE_2FA holds for every way in: tokens and sessions know whether their sign-in used a second factor."""

import re
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from tests.admin.conftest import service_token
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, mailed_codes, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game
from tests.kit.oauth import AUTHORIZE, new_site, query_of
from tests.kit.registration import mails_to
from tests.kit.server import Server
from tests.perm.endpoints.tokens import user_jwt

FACTOR = "device-1"
NEW_PASSWORD = "violet tractor sings quietly"


def administrator(server: Server, **fields: Any) -> str:
    login = new_user(server, **fields)
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    return login


def claims_of(jwt: str) -> dict[str, Any]:
    claims: dict[str, Any] = pyjwt.decode(jwt, options={"verify_signature": False})
    return claims


class Api:
    """Requests with one user JWT."""

    def __init__(self, server: Server, jwt: str) -> None:
        self.server, self.jwt, self.user_id = server, jwt, claims_of(jwt)["sub"]
        self.headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}

    def management(self) -> tuple[int, str]:
        with self.server.client() as client:
            answer = client.get("/api/admin/users", headers=self.headers)
        is_challenged = 'acr_values="urn:sso:acr:mfa"' in answer.headers.get("WWW-Authenticate", "")
        assert is_challenged == (answer.status_code == 403)
        return answer.status_code, answer.json().get("error", "")

    def permissions(self, path: str, **body: Any) -> tuple[int, str]:
        with self.server.client() as client:
            answer = client.post(f"/api/permissions/{path}", json=body, headers=self.headers)
        return answer.status_code, answer.json().get("error", "")


def api_login(server: Server, **fields: str) -> dict[str, Any]:
    with server.client() as client:
        answer = client.post("/proxy/api/login", json={"factor": FACTOR, **fields})
    data: dict[str, Any] = answer.json()
    return data | {"status_code": answer.status_code}


def other_user_data(user_id: str) -> dict[str, Any]:
    return {"action": "get", "application_id": 1, "data": {"type": "roles", "user_id": user_id}}


def test_administrative_rights_need_a_second_factor(strict: Server) -> None:
    weak = api_login(strict, login=administrator(strict), password=PASSWORD)
    renewed = api_login(strict, token=weak["token"])
    role = {"name": "helper", "meta": {}}
    for api in (Api(strict, weak["jwt"]), Api(strict, renewed["jwt"])):
        for status, error in (
            api.management(),
            api.permissions("roles", action="save", application_id=1, data=role),
            api.permissions("publish", project="Without a factor"),
            api.permissions("meta/data", **other_user_data(new_id(strict))),
            api.permissions(  # the own record, with a right that only an administrator has
                "meta/data", action="save", application_id=1, data={"user_id": api.user_id, "roles": ["root"]}
            ),
        ):
            assert status == 403, error
            assert "second factor" in error
            assert f"{strict.base_url}/account" in error
        own = {"action": "get", "application_id": 1, "data": {"type": "list"}}
        assert api.permissions("meta/data", **own)[0] == 200
        assert api.permissions("user/info")[0] == 200


def new_id(server: Server) -> str:
    login = new_user(server)
    user_id: str = query(server, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"]
    return user_id


def test_tokens_of_a_sign_in_with_a_code_administer(strict: Server) -> None:
    login = administrator(strict, totp_secret=TOTP_SECRET)
    data = api_login(strict, login=login, password=PASSWORD, otp=AuthenticatorApp(TOTP_SECRET).code())
    renewed = api_login(strict, token=data["token"])
    for jwt in (data["jwt"], renewed["jwt"]):
        assert claims_of(jwt)["acr"] == "2"
        assert Api(strict, jwt).management()[0] == 200
        assert Api(strict, jwt).permissions("meta/data", **other_user_data(new_id(strict)))[0] == 200


def test_service_clients_are_not_concerned(strict: Server) -> None:
    with strict.client() as client:
        headers = service_token(strict, "operator-of-strict", 1)
        assert client.get("/api/admin/users", headers=headers).status_code == 200


def sign_in_with_code(server: Server, login: str, app: AuthenticatorApp | None = None) -> Browser:
    browser = Browser(server)
    browser.follow(browser.sign_in(login))
    code = (app or AuthenticatorApp(TOTP_SECRET)).code()
    assert browser.submit("/login/code", otp=code).status_code == 303
    return browser


@pytest.mark.parametrize("with_code", [True, False])
def test_jwts_of_games_and_sites_know_how_the_browser_signed_in(strict: Server, with_code: bool) -> None:
    login = new_user(strict, **({"totp_secret": TOTP_SECRET} if with_code else {}))
    acr = "2" if with_code else None
    with sign_in_with_code(strict, login) if with_code else fresh_browser(strict, login) as browser:
        with Game(strict) as game:
            session = game.register(factor=FACTOR)
            browser.get(session.decision)
            browser.submit(f"{session.decision}/continue")
            assert claims_of(session.poll().json()["jwt"]).get("acr") == acr
        site = new_site(strict, first_party=True)
        code = query_of(browser.http.get(AUTHORIZE, params=site.query()))["code"]
        access_token = site.redeem(code).json()["access_token"]
        headers = {"Authorization": f"Bearer {access_token}", "Factor": FACTOR}
        exchanged = site.http.post("/proxy/oauth/exchangeToken", headers=headers)
        assert exchanged.status_code == 200, exchanged.text
        assert claims_of(exchanged.json()["token"]).get("acr") == acr


def test_console_asks_for_a_sign_in_with_the_factor(strict: Server) -> None:
    """A second factor that is turned on after the sign-in has not been used for it."""
    login = new_user(strict)
    with fresh_browser(strict, login) as browser:
        strict.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
        browser.open_account()
        form = {"csrf": browser.form("/logout")["csrf"], "enable": "1"}
        assert browser.post("/account/email-2fa", form).status_code == 303
        assert (browser.get("/console").status_code, "Sign in again" in browser.page.text) == (403, True)
        browser.follow(browser.submit("/logout"))
        browser.follow(browser.sign_in(login, next="/console"))
        browser.follow(browser.submit("/login/code", otp=mailed_codes(strict, login)[-1]))
        assert "Overview" in browser.page.text


def test_program_cannot_sign_in_without_a_factor(strictest: Server) -> None:
    login = new_user(strictest)
    answer = api_login(strictest, login=login, password=PASSWORD)
    assert (answer["status_code"], "jwt" in answer, "token" in answer) == (403, False, False)
    assert "second factor" in answer["error"]
    assert f"{strictest.base_url}/account" in answer["error"]
    strictest.apply({"users": [{"login": login, "totp_secret": TOTP_SECRET}]})
    code = AuthenticatorApp(TOTP_SECRET).code()
    answer = api_login(strictest, login=login, password=PASSWORD, otp=code)
    assert claims_of(answer["jwt"])["acr"] == "2"
    query(strictest, "UPDATE users SET totp_sealed = NULL WHERE login = $1", login)  # as before the requirement
    assert api_login(strictest, token=answer["token"])["status_code"] == 403


def test_session_from_before_the_requirement_leads_to_the_setup(strictest: Server) -> None:
    login = new_user(strictest)
    with fresh_browser(strictest, login) as browser:
        query(strictest, "UPDATE browser_sessions SET must_enrol = false")
        assert not browser.is_signed_in
        assert "Protect your account" in browser.get("/account/enrol").text


def without_the_factor(server: Server) -> tuple[str, Browser, dict[str, Any]]:
    """Returns the login of a user with an app, and a browser and tokens of sign-ins that were without it."""
    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    browser = sign_in_with_code(server, login, app)
    tokens = api_login(server, login=login, password=PASSWORD, otp=app.code())
    query(server, "UPDATE sign_ins SET second_factor = false WHERE auth = 'otp'")
    query(server, "UPDATE browser_sessions SET auth = 'login' WHERE auth = 'otp'")
    return login, browser, tokens


def test_sign_in_without_the_factor_is_not_used(strictest: Server) -> None:
    """The user has a factor. What was signed in without it gets nothing."""
    login, browser, tokens = without_the_factor(strictest)
    refused = api_login(strictest, token=tokens["token"])
    assert (refused["status_code"], "sign in with it" in refused.get("error", "")) == (403, True)
    site = new_site(strictest, first_party=True)
    with browser:
        assert not browser.is_signed_in
        assert "code" not in query_of(browser.http.get(AUTHORIZE, params=site.query(prompt="none")))
        browser.follow(browser.sign_in(login))
        assert browser.page.url.path == "/login/code"


def test_site_renews_and_exchanges_no_tokens_without_the_factor(strictest: Server) -> None:
    login = new_user(strictest, totp_secret=TOTP_SECRET)
    site = new_site(strictest, first_party=True)
    with sign_in_with_code(strictest, login) as browser:
        code = query_of(browser.http.get(AUTHORIZE, params=site.query(scope="openid offline_access")))["code"]
    tokens = site.redeem(code).json()
    query(
        strictest,
        "UPDATE oauth_grants SET auth = 'login' WHERE user_id = (SELECT user_id FROM users WHERE login = $1)",
        login,
    )
    headers = {"Authorization": f"Bearer {tokens['access_token']}", "Factor": FACTOR}
    assert site.http.post("/proxy/oauth/exchangeToken", headers=headers).status_code == 403
    assert site.refresh(tokens["refresh_token"]).status_code == 400


def test_access_key_renews_no_jwt_of_a_sign_in_without_the_factor(strictest: Server) -> None:
    root = administrator(strictest, totp_secret=TOTP_SECRET)
    code = AuthenticatorApp(TOTP_SECRET).code()
    jwt = api_login(strictest, login=root, password=PASSWORD, otp=code)["jwt"]
    with strictest.client() as client:
        headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
        body = {"action": "save", "application_id": 1, "data": {}}
        key = client.post("/api/permissions/accessKey", json=body, headers=headers).json()["data"]["hash"]
        weak = user_jwt(strictest, claims_of(jwt)["sub"])
        for presented, status in ((jwt, 200), (weak, 403)):
            answer = client.post(
                "/proxy/oauth/exchangeJwt",
                json={"jwt": presented, "factor": FACTOR},
                headers={"Authorization": f"Bearer {key}"},
            )
            assert answer.status_code == status, answer.text


def reset_password(server: Server, browser: Browser, login: str) -> httpx.Response:
    browser.get("/forgot")
    browser.submit("/forgot", login=login)
    link = re.search(r"/reset\?token=\S+", mails_to(server, login)[-1])
    assert link
    browser.follow(browser.get(link[0]))
    return browser.submit("/reset", new_password=NEW_PASSWORD, repeat_password=NEW_PASSWORD)


@pytest.mark.parametrize("kind", ["strict", "strictest"])
def test_password_reset_leads_to_a_sign_in_with_the_factor_that_is_required(
    request: pytest.FixtureRequest, kind: str
) -> None:
    """A mailed code after a mailed link would prove nothing more, so the user signs in with the new password."""
    server: Server = request.getfixturevalue(kind)
    login = administrator(server, email_2fa=True)
    with Browser(server) as browser:
        answer = reset_password(server, browser, login)
        assert answer.headers["Location"].startswith("/login?next=/account")
        assert not browser.is_signed_in
        browser.follow(browser.sign_in(login, NEW_PASSWORD))
        browser.follow(browser.submit("/login/code", otp=mailed_codes(server, login)[-1]))
        assert browser.get("/console").status_code == 200


def test_kept_account_is_not_signed_in_without_the_factor(strictest: Server) -> None:
    login = new_user(strictest, email_2fa=True)
    closed = "disabled = true, deletion_by = 'user', deletion_due = now() + interval '9 days'"
    query(strictest, f"UPDATE users SET {closed} WHERE login = $1", login)
    with Browser(strictest) as browser:
        reset_password(strictest, browser, login)
        answer = browser.submit("/login/keep")
        assert answer.headers["Location"] == "/login"
        assert not query(strictest, "SELECT FROM users WHERE login = $1 AND disabled", login)
        assert not query(strictest, "SELECT FROM browser_sessions JOIN users USING (user_id) WHERE login = $1", login)
