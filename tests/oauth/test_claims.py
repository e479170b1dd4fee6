"""The claims that the profile oidc adds to ID tokens and userinfo."""

import time
from typing import Any

import httpx
import pyotp
import pytest

from tests.kit.browser import AuthenticatorApp, query
from tests.kit.builders import PASSWORD
from tests.kit.oauth import ACR_MFA, ACR_PASSKEY, ACR_PASSWORD, Browser, Site, new_browser, new_site, query_of
from tests.kit.server import Server

ALWAYS = {"typ", "aud", "azp", "iss", "exp", "iat", "kid", "sub", "nonce", "auth_time", "acr", "amr", "sid"}
TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def claims_of(site: Site, browser: Browser, scope: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the claims of the ID token and of userinfo."""
    data = site.tokens(browser, scope=scope)
    return site.claims(data["id_token"]), site.userinfo(data["access_token"]).json()


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("openid", set()),
        ("openid email", {"email", "email_verified"}),
        ("openid profile", {"name", "nickname", "preferred_username", "locale", "updated_at"}),
    ],
)
def test_scopes_determine_the_claims_of_an_oidc_client(
    oidc: Site, browser: Browser, scope: str, names: set[str]
) -> None:
    in_token, in_userinfo = claims_of(oidc, browser, scope)
    assert set(in_token) == ALWAYS | names
    assert set(in_userinfo) == {"status", "sub"} | names
    assert {name: in_token[name] for name in names} == {name: in_userinfo[name] for name in names}


def test_values_of_the_claims_are_those_of_the_user(server: Server, oidc: Site) -> None:
    browser = new_browser(server, nick="Bea", lang="de", email_verified=True).sign_in()
    _, claims = claims_of(oidc, browser, "openid email profile")
    assert claims["email"] == browser.login
    assert claims["email_verified"] is True
    assert (claims["name"], claims["nickname"], claims["preferred_username"]) == ("Bea", "Bea", "Bea")
    assert claims["locale"] == "de"
    assert abs(claims["updated_at"] - time.time()) < 120


def test_claims_without_a_value_are_left_out_and_the_login_is_not_disclosed(server: Server, oidc: Site) -> None:
    browser = new_browser(server, nick="").sign_in()
    in_token, in_userinfo = claims_of(oidc, browser, "openid profile")
    for claims in (in_token, in_userinfo):
        assert not {"name", "nickname"} & set(claims)
        assert claims["preferred_username"] == claims["sub"]
        assert browser.login not in claims.values()


def test_updated_at_follows_changes_of_the_profile_only(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    at_first = claims_of(oidc, browser, "openid profile")[1]["updated_at"]
    while int(time.time()) <= at_first:
        time.sleep(0.1)
    server.apply({"users": [{"login": browser.login, "tags": ["beta"], "nick": "Ann"}]})
    assert claims_of(oidc, browser, "openid profile")[1]["updated_at"] == at_first
    server.apply({"users": [{"login": browser.login, "nick": "Zoe"}]})
    changed = claims_of(oidc, browser, "openid profile")[1]
    assert changed["updated_at"] > at_first
    assert changed["name"] == "Zoe"


def test_strict_clients_keep_the_claims_of_the_specification(site: Site, browser: Browser) -> None:
    in_token, in_userinfo = claims_of(site, browser, "openid email profile")
    assert set(in_token) == (ALWAYS - {"auth_time", "acr", "amr", "sid"}) | {"email", "nickname"}
    assert set(in_userinfo) == {"status", "sub", "email", "nickname"}


def test_sign_in_claims_after_a_password(oidc: Site, browser: Browser) -> None:
    data = oidc.tokens(browser)
    claims = oidc.claims(data["id_token"])
    assert (claims["acr"], claims["amr"]) == (ACR_PASSWORD, ["pwd"])
    refreshed = oidc.claims(oidc.refresh(data["refresh_token"]).json()["id_token"])
    assert {name: refreshed[name] for name in ("acr", "amr", "auth_time")} == {
        name: claims[name] for name in ("acr", "amr", "auth_time")
    }


def test_sign_in_claims_after_a_second_factor(server: Server, oidc: Site) -> None:
    browser = new_browser(server, totp_secret=TOTP_SECRET)
    page = browser.submit(browser.http.get("/login"), {"login": browser.login, "password": PASSWORD})
    page = browser.http.get(page.headers["Location"])
    answer = browser.submit(page, {"otp": pyotp.TOTP(TOTP_SECRET).now()}, form=0)
    assert answer.status_code == 303, answer.text
    claims = oidc.claims(oidc.tokens(browser, acr_values=f"{ACR_PASSKEY} {ACR_MFA}")["id_token"])
    assert (claims["acr"], claims["amr"]) == (ACR_MFA, ["pwd", "otp", "mfa"])


@pytest.mark.parametrize("prompt", [None, "none"])
@pytest.mark.parametrize("acr_values", [ACR_MFA, f"{ACR_PASSKEY} {ACR_MFA}", "gold"])
def test_acr_values_that_the_account_cannot_satisfy_are_an_error(
    oidc: Site, browser: Browser, acr_values: str, prompt: str | None
) -> None:
    answer = query_of(browser.authorize(oidc, acr_values=acr_values, prompt=prompt))
    assert (answer["error"], answer["state"], "code" in answer) == ("unmet_authentication_requirements", "s-1", False)
    assert acr_values.replace(" ", ", ") in answer["error_description"]


@pytest.mark.parametrize("acr_values", ["\0", f"{ACR_PASSWORD} a\0b"])
def test_acr_values_with_nul_are_an_error_before_the_request_is_saved(
    server: Server, oidc: Site, acr_values: str
) -> None:
    for recently_read in (False, True):
        answer = query_of(new_browser(server).authorize(oidc, acr_values=acr_values))
        assert (answer["error"], answer["state"]) == ("invalid_request", "s-1"), recently_read
        assert "acr_values" in answer["error_description"]


def test_one_of_several_acr_values_is_enough(oidc: Site, browser: Browser) -> None:
    claims = oidc.claims(oidc.tokens(browser, acr_values=f"gold {ACR_MFA} {ACR_PASSWORD}")["id_token"])
    assert claims["acr"] == ACR_PASSWORD


def test_user_steps_up_with_a_factor_that_the_sign_in_did_not_use(server: Server, oidc: Site) -> None:
    browser, app = new_browser(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)

    def sign_in(page: httpx.Response) -> httpx.Response:
        answer = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
        return browser.submit(browser.http.get(answer.headers["Location"]), {"otp": app.code()}, form=0)

    assert sign_in(browser.http.get("/login")).status_code == 303
    find_user = "SELECT user_id FROM users WHERE login = $1"
    query(server, f"UPDATE browser_sessions SET auth = 'login' WHERE user_id = ({find_user})", browser.login)
    silent = query_of(browser.authorize(oidc, acr_values=ACR_MFA, prompt="none"))
    assert silent["error"] == "unmet_authentication_requirements"
    answer = sign_in(browser.authorize(oidc, acr_values=ACR_MFA))
    claims = oidc.claims(oidc.redeem(query_of(answer)["code"]).json()["id_token"])
    assert (claims["acr"], claims["amr"]) == (ACR_MFA, ["pwd", "otp", "mfa"])


def test_sign_in_with_less_than_acr_values_ends_the_authorization(server: Server, oidc: Site) -> None:
    browser = new_browser(server)
    page = browser.authorize(oidc, acr_values=ACR_MFA)
    answer = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
    assert query_of(answer)["error"] == "unmet_authentication_requirements"


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"prompt": "none", "login_hint": "somebody@else.example"}, "account_selection_required"),
        ({"prompt": "none", "max_age": "0"}, "login_required"),
    ],
)
def test_prompt_none_reports_what_is_needed(
    oidc: Site, browser: Browser, parameters: dict[str, str | None], error: str
) -> None:
    answer = query_of(browser.authorize(oidc, **parameters))
    assert (answer["error"], answer["state"], answer["iss"]) == (error, "s-1", oidc.server.base_url)


def test_prompt_none_does_not_tell_who_is_signed_in_before_consent(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc", consent=True)
    hints: list[dict[str, str]] = [
        {"login_hint": browser.login},
        {"login_hint": "else@where.example"},
        {"max_age": "0"},
    ]
    answers = [query_of(browser.authorize(site, prompt="none", **hint)) for hint in [{}, *hints]]
    assert answers[0]["error"] == "consent_required"
    assert answers == answers[:1] * 4
    browser.submit(browser.authorize(site), {"decision": "allow"})
    assert browser.code(site, prompt="none", login_hint=browser.login)
    wrong = query_of(browser.authorize(site, prompt="none", login_hint="else@where.example"))
    assert wrong["error"] == "account_selection_required"


def test_prompt_none_succeeds_for_the_user_of_login_hint(oidc: Site, browser: Browser) -> None:
    assert browser.code(oidc, prompt="none", login_hint=browser.login.upper())


def test_prompt_none_without_consent_reports_consent_required(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc", consent=True)
    assert query_of(browser.authorize(site, prompt="none"))["error"] == "consent_required"
    site_of_nobody = new_browser(server)
    assert query_of(site_of_nobody.authorize(site, prompt="none"))["error"] == "login_required"


def test_discovery_lists_the_claims_and_acr_values(server: Server, oidc: Site, browser: Browser) -> None:
    document = oidc.http.get("/.well-known/openid-configuration").json()
    in_token, in_userinfo = claims_of(oidc, browser, "openid email profile trust")
    own = {"typ", "kid", "status"}
    assert set(in_token) | set(in_userinfo) == set(document["claims_supported"]) | own
    assert in_token["acr"] in document["acr_values_supported"]
