"""Changes of the account and links from mails are no sign-in: they renew no time and claim no method."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt as pyjwt
import pytest

from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game
from tests.kit.oauth import ACR_MFA, ACR_PASSWORD, AUTHORIZE, Site, query_of
from tests.kit.passkey_sign_in import new_passkey, register
from tests.kit.registration import mails_to
from tests.kit.second_factors import displayed_secret
from tests.kit.server import Server

NEW_PASSWORD = "violet tractor sings quietly"
PROOF_FIELDS = ("current_password", "present_otp", "credential")
AN_HOUR_AGO = """UPDATE browser_sessions SET created = created - interval '1 hour' {} WHERE user_id =
    (SELECT user_id FROM users WHERE login = $1)"""


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    """A browser in which the user signed in with the password, an hour ago, and has confirmed a change since."""
    with fresh_browser(server, login) as browser:
        query(server, AN_HOUR_AGO.format(""), login)
        browser.open_account()
        yield browser


def authorize(browser: Browser, site: Site, **parameters: str) -> httpx.Response:
    return browser.http.get(f"{AUTHORIZE}?{urlencode(site.query(**parameters))}")


def sign_in_claims(browser: Browser, site: Site, **parameters: str) -> dict[str, Any]:
    answer = authorize(browser, site, **parameters)
    assert answer.status_code == 302, answer.text
    return site.claims(site.redeem(query_of(answer)["code"]).json()["id_token"])


def change_without_proof(browser: Browser, action: str, **fields: str) -> int:
    """Sends a form without the fields for the password and a code, as a thief of the cookie does."""
    form = {name: value for name, value in browser.form(action).items() if name not in PROOF_FIELDS}
    return browser.post(action, form | fields).status_code


def is_fresh(browser: Browser, site: Site) -> bool:
    """Whether a site that wants a sign-in within the last minute accepts the session."""
    return authorize(browser, site, max_age="60").status_code == 302


def test_codes_by_mail_turned_on_and_off_are_no_sign_in(oidc: Site, browser: Browser) -> None:
    for _ in range(2):
        assert change_without_proof(browser, "/account/email-2fa") == 303
        browser.open_account()
        assert not is_fresh(browser, oidc)
        claims = sign_in_claims(browser, oidc)
        assert (claims["acr"], claims["amr"]) == (ACR_PASSWORD, ["pwd"])
        assert claims["auth_time"] <= claims["iat"] - 3600


def test_changes_do_not_renew_the_recent_authentication(server: Server, login: str, browser: Browser) -> None:
    """Nine minutes after the proof, a change is accepted. The time after which the forms ask again stays the same."""
    query(server, AN_HOUR_AGO.format(", authenticated = authenticated - interval '9 minutes'"), login)
    assert change_without_proof(browser, "/account/email-2fa") == 303
    sql = """SELECT now() - authenticated > interval '8 minutes' AS is_old FROM browser_sessions
        JOIN users USING (user_id) WHERE login = $1"""
    assert [row["is_old"] for row in query(server, sql, login)] == [True]


@pytest.mark.parametrize("is_proven", [True, False])
def test_game_keeps_the_time_of_the_sign_in_to_the_browser(
    server: Server, login: str, browser: Browser, is_proven: bool
) -> None:
    """Also the JWT that the game gets with the session token of that sign-in."""
    if not is_proven:
        query(server, AN_HOUR_AGO.format(", authenticated = NULL"), login)
    with Game(server) as game:
        session = game.register(factor="device-1")
        browser.get(session.decision)
        browser.submit(f"{session.decision}/continue")
        data = session.poll().json()
        again = game.http.post("/proxy/api/login", json={"token": data["token"], "factor": "device-1"}).json()
    for jwt in (data["jwt"], again["jwt"]):
        claims = pyjwt.decode(jwt, options={"verify_signature": False})
        assert ("auth_time" in claims) == is_proven
        assert claims.get("auth_time", 0) <= claims["iat"] - 3600
        assert claims["exp"] > claims["iat"] + 60


@pytest.mark.parametrize("factor", ["totp", "passkey"])
def test_new_factor_counts_from_the_next_sign_in(server: Server, oidc: Site, browser: Browser, factor: str) -> None:
    if factor == "totp":
        browser.get("/account/totp")
        status = change_without_proof(browser, "/account/totp", otp=AuthenticatorApp(displayed_secret(browser)).code())
    else:
        status = register(browser, new_passkey(server)).status_code
    assert status == 303
    claims = sign_in_claims(browser, oidc)
    assert (claims["acr"], claims["amr"], is_fresh(browser, oidc)) == (ACR_PASSWORD, ["pwd"], False)


def test_change_with_password_and_code_is_a_sign_in(server: Server, oidc: Site, login: str) -> None:
    """The form has the same proofs as a sign-in, so the session claims them from then on."""
    server.apply({"users": [{"login": login, "totp_secret": TOTP_SECRET}]})
    with Browser(server) as browser:
        browser.follow(browser.sign_in(login))
        app = AuthenticatorApp(TOTP_SECRET)
        browser.submit("/login/code", otp=app.code())
        query(server, AN_HOUR_AGO.format(", auth = 'login'"), login)
        browser.open_account()
        assert not is_fresh(browser, oidc)
        fields = browser.form("/account/email-2fa") | {"current_password": PASSWORD, "present_otp": app.code()}
        assert browser.post("/account/email-2fa", fields).status_code == 303
        assert is_fresh(browser, oidc)
        claims = sign_in_claims(browser, oidc)
        assert (claims["acr"], claims["amr"]) == (ACR_MFA, ["pwd", "otp", "mfa"])


def reset_password(server: Server, login: str, **fields: str) -> Browser:
    browser = Browser(server)
    browser.get("/forgot")
    browser.submit("/forgot", login=login)
    link = re.search(r"/reset\?token=\S+", mails_to(server, login)[-1])
    assert link
    browser.follow(browser.get(link[0]))
    answer = browser.submit("/reset", new_password=NEW_PASSWORD, repeat_password=NEW_PASSWORD, **fields)
    assert answer.status_code == 303, browser.problem
    return browser


@pytest.mark.parametrize("fields", [{}, {"credential": "{}"}])
def test_password_reset_claims_no_factor_that_was_not_checked(
    server: Server, oidc: Site, login: str, fields: dict[str, str]
) -> None:
    """A reset asks for no code by mail: the link was mailed as well."""
    server.apply({"users": [{"login": login, "email_2fa": True}]})
    with reset_password(server, login, **fields) as browser:
        claims = sign_in_claims(browser, oidc)
        assert (claims["acr"], claims.get("amr"), claims.get("auth_time")) == (ACR_PASSWORD, None, None)
        assert not is_fresh(browser, oidc)
        browser.open_account()
        assert change_without_proof(browser, "/account/email-2fa") == 422


def test_password_reset_with_a_code_claims_the_code(server: Server, oidc: Site, login: str) -> None:
    server.apply({"users": [{"login": login, "totp_secret": TOTP_SECRET}]})
    with reset_password(server, login, otp=AuthenticatorApp(TOTP_SECRET).code()) as browser:
        claims = sign_in_claims(browser, oidc)
        assert (claims["acr"], claims["amr"], "auth_time" in claims) == (ACR_MFA, ["otp", "mfa"], False)
        assert not is_fresh(browser, oidc)


def test_site_that_wants_a_new_login_asks_after_a_reset(server: Server, oidc: Site, login: str) -> None:
    with reset_password(server, login) as browser:
        answer = authorize(browser, oidc, prompt="login")
        browser.page = answer
        answer = browser.submit("/login", login=login, password=NEW_PASSWORD)
        assert "code=" in answer.headers["Location"], answer.headers
