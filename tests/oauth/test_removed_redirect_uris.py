"""Removing a redirect URI from a client revokes the codes and grants there."""

from typing import Any

import pytest

from tests.kit.browser import query
from tests.kit.oauth import Browser, Site, error_of, new_browser, new_site, query_of
from tests.kit.server import Server

GAME_URI = "https://game.example.com/cb"
BOTH_HOSTS = ["game.example.com", "shop.example.com"]


def apply_client(site: Site, **fields: Any) -> None:
    site.server.apply({"clients": [{"client_id": site.client_id, **fields}]})


@pytest.fixture
def browser(server: Server) -> Browser:
    return new_browser(server).sign_in()


@pytest.mark.parametrize("profile", ["strict", "oidc"])
def test_codes_and_grants_at_a_removed_host_are_revoked(server: Server, browser: Browser, profile: str) -> None:
    site = new_site(server, redirect_hosts=BOTH_HOSTS, profile=profile)
    code, data = browser.code(site), site.tokens(browser)
    apply_client(site, redirect_hosts=["shop.example.com"])
    assert error_of(site.redeem(code)) == (400, "invalid_grant")
    error = "invalid_request" if profile == "strict" else "invalid_grant"
    assert error_of(site.refresh(data["refresh_token"])) == (400, error)
    assert site.userinfo(data["access_token"]).status_code == 401
    apply_client(site, redirect_hosts=BOTH_HOSTS)
    assert error_of(site.refresh(data["refresh_token"])) == (400, error)


def test_oidc_client_without_redirect_uri_in_the_request_loses_the_grant_as_well(
    server: Server, browser: Browser
) -> None:
    site = new_site(server, redirect_hosts=BOTH_HOSTS, profile="oidc")
    token = site.tokens(browser)["refresh_token"]
    apply_client(site, redirect_hosts=["shop.example.com"])
    assert error_of(site.refresh(token, redirect_uri=None, headers=site.basic())) == (400, "invalid_grant")


def test_grants_at_remaining_hosts_stay_valid(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_hosts=BOTH_HOSTS)
    data = site.tokens(browser)
    apply_client(site, redirect_hosts=["game.example.com"], name="Another name")
    assert site.refresh(data["refresh_token"]).status_code == 200
    apply_client(site, redirect_hosts=["game.example.com", "new.example.com"])
    assert site.userinfo(data["access_token"]).status_code == 200


def test_grants_at_a_removed_exact_redirect_uri_are_revoked(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_uris=[GAME_URI, "https://game.example.com/other"])
    data = site.tokens(browser)
    apply_client(site, redirect_uris=["https://game.example.com/other"])
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")


def test_pending_authorization_at_a_removed_host_is_finished(server: Server) -> None:
    site = new_site(server, redirect_hosts=BOTH_HOSTS, consent=True)
    browser = new_browser(server).sign_in()
    page = browser.authorize(site)
    apply_client(site, redirect_hosts=["shop.example.com"])
    response = browser.submit(page, {"decision": "allow"})
    assert response.status_code == 400
    assert "Location" not in response.headers


def test_code_issued_while_its_host_was_removed_cannot_be_redeemed(server: Server, browser: Browser) -> None:
    """The client is changed directly in the database, so that the code is not revoked."""
    site = new_site(server, redirect_hosts=BOTH_HOSTS)
    code = browser.code(site)
    sql = "UPDATE oauth_clients SET redirect_hosts = '{shop.example.com}' WHERE client_id = $1"
    query(server, sql, site.client_id)
    assert error_of(site.redeem(code)) == (400, "invalid_grant")


def test_service_without_tls_compares_only_the_host(server: Server, browser: Browser) -> None:
    """The test server has no TLS, so it accepts http URIs at hosts that are not listed with http."""
    site = new_site(server, redirect_uri="http://game.example.com/cb", redirect_hosts=BOTH_HOSTS)
    token = site.tokens(browser)["refresh_token"]
    apply_client(site, redirect_hosts=["game.example.com"])
    token = site.refresh(token).json()["refresh_token"]
    apply_client(site, redirect_hosts=["shop.example.com"])
    assert site.refresh(token).status_code == 400


def test_code_is_revoked_when_its_host_is_no_longer_allowed_without_tls(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_uri="http://game.example.com/cb", redirect_hosts=["http://game.example.com"])
    code = browser.authorize(site)
    assert "code" in query_of(code)
    apply_client(site, redirect_hosts=["game.example.com"])
    assert error_of(site.redeem(query_of(code)["code"])) == (400, "invalid_grant")
