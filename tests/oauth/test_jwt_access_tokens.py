"""Access tokens as JWTs (RFC 9068), for clients that opt in."""

from typing import Any

import jwt as pyjwt
import pytest

from tests.kit.oauth import AUTHORIZE, INTROSPECT, REVOKE, TOKEN, USERINFO, Browser, Site, new_site, query_of
from tests.kit.server import Server

EXCHANGE = "/proxy/oauth/exchangeToken"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"
API = "https://api.example.com"
SERVICE: dict[str, Any] = {
    "profile": "oidc",
    "application_id": 78,
    "resource_server": True,
    "token_exchange": True,
    "redirect_uri": f"{API}/cb",
}


@pytest.fixture(scope="module", params=["", "ES256", "EdDSA"])
def api(server: Server, request: pytest.FixtureRequest) -> Site:
    return new_site(server, profile="oidc", access_token_format="jwt", id_alg=request.param)


def test_token_is_a_jwt_that_anyone_can_verify(server: Server, api: Site, browser: Browser) -> None:
    data = api.tokens(browser, scope="openid email offline_access")
    token = data["access_token"]
    assert pyjwt.get_unverified_header(token)["typ"] == "at+jwt"
    claims = api.claims(token)
    identity = api.claims(data["id_token"])
    assert set(claims) == {
        "typ", "iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti", "kid", "auth_time", "acr", "amr",
    }  # fmt: skip
    assert claims["iss"] == server.base_url
    assert claims["aud"] == [server.base_url]
    assert claims["client_id"] == api.client_id
    assert claims["scope"] == "openid offline_access email"
    assert claims["exp"] - claims["iat"] == data["expires_in"]
    assert {name: claims[name] for name in ("sub", "auth_time", "acr", "amr")} == {
        name: identity[name] for name in ("sub", "auth_time", "acr", "amr")
    }


def test_token_works_until_it_is_revoked(api: Site, browser: Browser) -> None:
    data = api.tokens(browser)
    refreshed = api.refresh(data["refresh_token"]).json()
    for token in (data["access_token"], refreshed["access_token"]):
        assert api.userinfo(token).status_code == 200
        headers = {"Authorization": f"Bearer {token}"}
        assert api.http.post(EXCHANGE, headers=headers).status_code == 200
    assert api.http.post(REVOKE, data={"token": data["access_token"]}, headers=api.basic()).status_code == 200
    assert api.userinfo(data["access_token"]).status_code == 401
    assert api.userinfo(refreshed["access_token"]).status_code == 200
    api.revoke(refreshed["refresh_token"])
    assert api.userinfo(refreshed["access_token"]).status_code == 401


def test_jti_and_changed_tokens_are_refused(api: Site, browser: Browser) -> None:
    data = api.tokens(browser)
    token = data["access_token"]
    header, payload, signature = token.split(".")
    changed = signature[:-6] + ("AAAAAA" if not signature.endswith("AAAAAA") else "BBBBBB")
    other = api.tokens(browser)["access_token"].split(".")[1]
    for bad in (
        api.claims(token)["jti"],
        f"{header}.{payload}.{changed}",
        f"{header}.{other}.{signature}",
        f"{header}.{payload}.",
        data["id_token"],
        data["refresh_token"],
    ):
        assert api.userinfo(bad).status_code == 401, bad


def test_repeated_refresh_gets_the_same_jwt(api: Site, browser: Browser) -> None:
    token = api.tokens(browser)["refresh_token"]
    headers = api.bearer() | {"Idempotency-Key": "k"}
    first, second = (api.refresh(token, headers=headers).json() for _ in range(2))
    assert first["access_token"] == second["access_token"]


def test_introspection_knows_jwt_access_tokens(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc", access_token_format="jwt", application_id=77)
    resource_server = new_site(server, profile="oidc", resource_server=True, application_id=77)
    data = site.tokens(browser)

    def introspect() -> dict[str, Any]:
        form = {"token": data["access_token"]}
        answer = resource_server.http.post(INTROSPECT, data=form, headers=resource_server.basic())
        claims: dict[str, Any] = answer.json()
        return claims

    in_token, answered = site.claims(data["access_token"]), introspect()
    assert answered["active"]
    assert {name: answered[name] for name in ("acr", "amr", "auth_time")} == {
        name: in_token[name] for name in ("acr", "amr", "auth_time")
    }
    site.revoke(data["refresh_token"])
    assert introspect() == {"active": False}


def test_long_token_is_accepted_everywhere(server: Server, browser: Browser) -> None:
    """It names five resources, each as long as one may be."""
    api = new_site(server, **SERVICE)
    site = new_site(server, profile="oidc", application_id=78, access_token_format="jwt")
    resources = [f"{API}/{number}".ljust(512, "x") for number in range(5)]
    answer = browser.http.get(AUTHORIZE, params={**site.query(), "resource": resources})
    token = site.redeem(query_of(answer)["code"]).json()["access_token"]
    assert len(token) > 4096
    introspected = api.http.post(INTROSPECT, data={"token": token}, headers=api.basic())
    assert introspected.json()["active"]
    assert site.http.post(USERINFO, data={"access_token": token}).status_code == 200
    form = {"grant_type": TOKEN_EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN_TYPE}
    exchanged = api.http.post(TOKEN, data=form | {"resource": resources[0]}, headers=api.basic())
    assert exchanged.status_code == 200, exchanged.text
    assert site.http.post(REVOKE, data={"token": token}, headers=site.basic()).status_code == 200
    assert site.userinfo(token).status_code == 401


def test_change_of_the_format_acts_on_a_cached_client(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    data = site.tokens(browser)
    assert "." not in data["access_token"]
    server.apply({"clients": [{"client_id": site.client_id, "access_token_format": "jwt"}]})
    refreshed = site.refresh(data["refresh_token"]).json()
    assert refreshed["access_token"].count(".") == 2
    assert site.userinfo(refreshed["access_token"]).status_code == 200
    assert site.userinfo(data["access_token"]).status_code == 200
