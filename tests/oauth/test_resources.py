"""Access tokens for resource servers that the client names (RFC 8707), and their introspection."""

from typing import Any

import pytest

from tests.kit.oauth import AUTHORIZE, INTROSPECT, PAR, Browser, Site, error_of, new_browser, new_site, query_of
from tests.kit.server import Server

INACTIVE = {"active": False}


@pytest.fixture(scope="module")
def api(server: Server) -> Site:
    fields: dict[str, Any] = {
        "resource_server": True,
        "application_id": 81,
        "redirect_uri": "https://api.example.com/cb",
    }
    return new_site(server, profile="oidc", **fields)


@pytest.fixture(scope="module")
def files(server: Server) -> Site:
    """A resource server that lists its redirect URIs."""
    fields: dict[str, Any] = {
        "resource_server": True,
        "application_id": 82,
        "redirect_uri": "https://files.example.com/cb",
    }
    return new_site(server, profile="oidc", redirect_uris=["https://files.example.com/cb"], **fields)


@pytest.fixture(scope="module")
def shop(server: Server) -> Site:
    """A client of another application, with access tokens that are JWTs."""
    return new_site(server, profile="oidc", application_id=83, access_token_format="jwt")


def introspect(site: Site, token: str) -> dict[str, Any]:
    data: dict[str, Any] = site.http.post(INTROSPECT, data={"token": token}, headers=site.basic()).json()
    return data


def code(browser: Browser, site: Site, *resources: str) -> str:
    answer = browser.http.get(AUTHORIZE, params={**site.query(), "resource": list(resources)})
    assert answer.status_code == 302, answer.text
    return query_of(answer)["code"]


@pytest.mark.parametrize("resource", ["{client_id}", "https://api.example.com", "https://api.example.com/v1?x=y"])
def test_resource_server_introspects_tokens_that_are_meant_for_it(
    shop: Site, api: Site, files: Site, browser: Browser, resource: str
) -> None:
    named = resource.format(client_id=api.client_id)
    tokens = shop.redeem(code(browser, shop, named), headers=shop.basic()).json()
    claims = introspect(api, tokens["access_token"])
    assert claims["active"] is True
    assert claims["client_id"] == shop.client_id
    assert claims["aud"] == [shop.server.base_url, named]
    assert shop.claims(tokens["access_token"])["aud"] == [shop.server.base_url, named]
    assert introspect(files, tokens["access_token"]) == INACTIVE
    assert shop.userinfo(tokens["access_token"]).status_code == 200
    refreshed = shop.refresh(tokens["refresh_token"], headers=shop.basic()).json()
    assert introspect(api, refreshed["access_token"])["aud"] == [shop.server.base_url, named]


def test_token_is_not_active_where_the_user_is_banned(server: Server, shop: Site, api: Site, files: Site) -> None:
    server.apply({"applications": [{"application_id": 81, "name": "API"}, {"application_id": 82, "name": "Files"}]})
    browser = new_browser(server).sign_in()
    named = (api.client_id, files.client_id)
    token = shop.redeem(code(browser, shop, *named), headers=shop.basic()).json()["access_token"]
    assert introspect(api, token)["active"] is introspect(files, token)["active"] is True
    server.sso("user", "ban", browser.login, "--app", "81")
    assert introspect(api, token) == INACTIVE
    assert introspect(files, token)["active"] is True


def test_token_without_a_resource_is_not_active_for_other_applications(shop: Site, api: Site, browser: Browser) -> None:
    token = shop.redeem(code(browser, shop), headers=shop.basic()).json()["access_token"]
    assert shop.claims(token)["aud"] == [shop.server.base_url]
    assert introspect(api, token) == INACTIVE


def test_token_for_one_server_is_not_active_for_another_of_the_same_application(
    server: Server, shop: Site, browser: Browser
) -> None:
    fields: dict[str, Any] = {"profile": "oidc", "resource_server": True, "application_id": 83}
    chat, scores = new_site(server, **fields), new_site(server, **fields)
    named = shop.redeem(code(browser, shop, chat.client_id), headers=shop.basic()).json()["access_token"]
    assert introspect(chat, named)["active"] is True
    assert introspect(scores, named) == INACTIVE
    for_all = shop.redeem(code(browser, shop), headers=shop.basic()).json()["access_token"]
    assert introspect(scores, for_all)["active"] is True


def test_token_requests_narrow_the_resources(shop: Site, api: Site, files: Site, browser: Browser) -> None:
    both = [api.client_id, "https://files.example.com/"]
    tokens = shop.redeem(code(browser, shop, *both), headers=shop.basic(), resource=api.client_id).json()
    assert introspect(api, tokens["access_token"])["aud"][1:] == [api.client_id]
    assert introspect(files, tokens["access_token"]) == INACTIVE
    tokens = shop.refresh(tokens["refresh_token"], headers=shop.basic(), resource=both[1]).json()
    assert introspect(files, tokens["access_token"])["active"] is True
    assert introspect(api, tokens["access_token"]) == INACTIVE
    tokens = shop.refresh(tokens["refresh_token"], headers=shop.basic()).json()
    assert introspect(api, tokens["access_token"])["aud"][1:] == both


def test_token_request_cannot_extend_the_resources(shop: Site, api: Site, files: Site, browser: Browser) -> None:
    own = code(browser, shop, api.client_id)
    more = {"resource": [api.client_id, files.client_id]}
    for _ in range(2):
        assert error_of(shop.redeem(own, headers=shop.basic(), **more)) == (400, "invalid_target")
    tokens = shop.redeem(own, headers=shop.basic()).json()
    assert error_of(shop.refresh(tokens["refresh_token"], headers=shop.basic(), **more)) == (400, "invalid_target")
    assert shop.refresh(tokens["refresh_token"], headers=shop.basic()).status_code == 200


def test_resource_may_be_named_at_the_token_endpoint_only(shop: Site, api: Site, browser: Browser) -> None:
    token = shop.redeem(code(browser, shop), headers=shop.basic(), resource=api.client_id).json()["access_token"]
    assert introspect(api, token)["active"] is True


UNREGISTERED = (
    "unknown", "https://evil.example/", "https://api.example.com.evil.example/", "http://api.example.com@evil.example",
    "https://api.example.com/#x", "x y", "é", "x" * 600,
)  # fmt: skip


def test_unregistered_resources_are_refused(shop: Site, browser: Browser) -> None:
    own, basic = code(browser, shop), shop.basic()
    for resource in UNREGISTERED:
        assert query_of(browser.authorize(shop, resource=resource))["error"] == "invalid_target"
        pushed = shop.http.post(PAR, data=shop.query(resource=resource), headers=basic)
        assert error_of(pushed) == (400, "invalid_target"), resource
        assert error_of(shop.redeem(own, headers=basic, resource=resource)) == (400, "invalid_target"), resource


def test_client_that_is_no_resource_server_is_refused(server: Server, shop: Site, browser: Browser) -> None:
    other = new_site(server, profile="oidc")
    assert query_of(browser.authorize(shop, resource=other.client_id))["error"] == "invalid_target"
    many = [f"https://api.example.com/{number}" for number in range(6)]
    answer = browser.http.get(AUTHORIZE, params={**shop.query(), "resource": many})
    assert query_of(answer)["error"] == "invalid_target"


def test_resources_of_a_pushed_request(shop: Site, api: Site, files: Site, browser: Browser) -> None:
    form = {**shop.query(), "resource": [api.client_id, files.client_id]}
    pushed = shop.http.post(PAR, data=form, headers=shop.basic()).json()
    parameters = {"client_id": shop.client_id, "request_uri": pushed["request_uri"]}
    own = query_of(browser.http.get(AUTHORIZE, params=parameters))["code"]
    token = shop.redeem(own, headers=shop.basic()).json()["access_token"]
    assert introspect(files, token)["aud"][1:] == [api.client_id, files.client_id]


def test_token_for_a_resource_server_is_not_exchanged(shop: Site, api: Site, browser: Browser) -> None:
    """A resource server must not get a user JWT with a token that it received."""
    token = shop.redeem(code(browser, shop, api.client_id), headers=shop.basic()).json()["access_token"]
    answer = shop.http.post("/proxy/oauth/exchangeToken", headers={"Authorization": f"Bearer {token}"})
    assert error_of(answer) == (401, "invalid_token")
