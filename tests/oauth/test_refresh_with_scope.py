"""A refresh may ask for fewer scopes (RFC 6749 section 6): only the new access token and ID token have fewer."""

from typing import Any

import pytest

from tests.kit.oauth import INTROSPECT, TOKEN, Browser, Site, error_of, new_site
from tests.kit.server import Server

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
SCOPE = "openid offline_access email profile"
SERVICE: dict[str, Any] = {"profile": "oidc", "application_id": 91, "resource_server": True, "token_exchange": True}


@pytest.fixture(scope="module", params=["opaque", "jwt"])
def shop(server: Server, request: pytest.FixtureRequest) -> Site:
    server.apply({"applications": [{"application_id": 91, "name": "Pier"}]})
    return new_site(server, profile="oidc", application_id=91, access_token_format=request.param)


@pytest.fixture(scope="module")
def api(server: Server) -> Site:
    return new_site(server, **SERVICE)


def refreshed(site: Site, token: str, scope: str | None, **headers: str) -> dict[str, Any]:
    answer = site.refresh(token, headers=site.basic() | headers, scope=scope)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    return data


def scope_of(api: Site, token: str) -> str:
    return str(api.http.post(INTROSPECT, data={"token": token}, headers=api.basic()).json()["scope"])


def test_access_token_has_the_requested_scopes_and_the_next_one_has_all(
    shop: Site, api: Site, browser: Browser
) -> None:
    token = shop.tokens(browser, scope=SCOPE)["refresh_token"]
    data = refreshed(shop, token, "profile  openid openid")
    assert data["scope"] == scope_of(api, data["access_token"]) == "openid profile"
    assert "email" not in shop.claims(data["id_token"])
    assert shop.claims(data["id_token"])["nickname"] == "Ann"
    claims = shop.userinfo(data["access_token"]).json()
    assert "email" not in claims
    assert claims["nickname"] == "Ann"
    assert shop.claims(data["refresh_token"])["scopes"] == SCOPE
    data = refreshed(shop, data["refresh_token"], None)
    assert "scope" not in data
    assert scope_of(api, data["access_token"]) == SCOPE
    assert shop.claims(data["id_token"])["email"] == shop.userinfo(data["access_token"]).json()["email"]


def test_without_openid_there_is_no_id_token(shop: Site, api: Site, browser: Browser) -> None:
    data = refreshed(shop, shop.tokens(browser, scope=SCOPE)["refresh_token"], "email")
    assert set(data) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert data["scope"] == scope_of(api, data["access_token"]) == "email"
    assert error_of(shop.userinfo(data["access_token"])) == (403, "insufficient_scope")
    bearer = {"Authorization": f"Bearer {data['access_token']}"}
    assert error_of(shop.http.post("/proxy/oauth/exchangeToken", headers=bearer)) == (401, "invalid_token")


def test_token_exchange_does_not_widen_the_scopes_again(shop: Site, api: Site, browser: Browser) -> None:
    token = refreshed(shop, shop.tokens(browser, scope=SCOPE)["refresh_token"], "openid")["access_token"]
    form = {"grant_type": GRANT, "subject_token": token, "subject_token_type": ACCESS_TOKEN}
    assert api.http.post(TOKEN, data=form, headers=api.basic()).json()["scope"] == "openid"
    wider = api.http.post(TOKEN, data={**form, "scope": "openid email"}, headers=api.basic())
    assert error_of(wider) == (400, "invalid_scope")


@pytest.mark.parametrize("scope", ["openid trust", "openid admin", "openid\temail", "openid,email"])
def test_scopes_that_were_not_granted_are_refused_and_the_token_stays_valid(
    shop: Site, browser: Browser, scope: str
) -> None:
    token = shop.tokens(browser, scope=SCOPE)["refresh_token"]
    assert error_of(shop.refresh(token, headers=shop.basic(), scope=scope)) == (400, "invalid_scope")
    assert error_of(shop.refresh(token, headers=shop.basic("wrong"), scope=scope)) == (401, "invalid_client")
    assert "scope" not in refreshed(shop, token, " ")  # as without one


def test_old_refresh_token_is_a_replay_whatever_its_scope(shop: Site, browser: Browser) -> None:
    token = shop.tokens(browser, scope=SCOPE)["refresh_token"]
    newest = refreshed(shop, token, None)["refresh_token"]
    assert error_of(shop.refresh(token, headers=shop.basic(), scope="trust")) == (400, "invalid_grant")
    assert error_of(shop.refresh(newest, headers=shop.basic())) == (400, "invalid_grant")


def test_repetition_of_a_refresh_has_the_same_scopes(shop: Site, browser: Browser) -> None:
    token = shop.tokens(browser, scope=SCOPE)["refresh_token"]
    first, again = (refreshed(shop, token, "openid", **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first | {"expires_in": 0} == again | {"expires_in": 0}
    other = shop.refresh(token, headers=shop.basic() | {"Idempotency-Key": "k"}, scope="openid email")
    assert error_of(other) == (400, "invalid_grant")
