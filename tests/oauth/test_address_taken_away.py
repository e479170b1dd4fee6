"""A redirect address that is taken away from a client takes along what is outstanding there."""

from typing import Any

import pytest

from tests.kit.browser import query
from tests.kit.oauth import Browser, Site, error_of, new_browser, new_site, query_of
from tests.kit.server import Server

HERE, THERE = "https://game.example.com/cb", "https://shop.example.com/cb"
BOTH = ["game.example.com", "shop.example.com"]


def change(site: Site, **fields: Any) -> None:
    site.server.apply({"clients": [{"client_id": site.client_id, **fields}]})


@pytest.fixture
def browser(server: Server) -> Browser:
    return new_browser(server).sign_in()


@pytest.mark.parametrize("profile", ["strict", "oidc"])
def test_codes_and_grants_at_a_host_that_is_taken_away_end(server: Server, browser: Browser, profile: str) -> None:
    site = new_site(server, redirect_hosts=BOTH, profile=profile)
    code, data = browser.code(site), site.tokens(browser)
    change(site, redirect_hosts=["shop.example.com"])
    assert error_of(site.redeem(code)) == (400, "invalid_grant")
    bad = "invalid_request" if profile == "strict" else "invalid_grant"
    assert error_of(site.refresh(data["refresh_token"])) == (400, bad)
    assert site.userinfo(data["access_token"]).status_code == 401
    change(site, redirect_hosts=BOTH)
    assert error_of(site.refresh(data["refresh_token"])) == (400, bad)


def test_a_standard_client_need_not_send_the_address_for_it_to_be_judged(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_hosts=BOTH, profile="oidc")
    token = site.tokens(browser)["refresh_token"]
    change(site, redirect_hosts=["shop.example.com"])
    assert error_of(site.refresh(token, redirect_uri=None, headers=site.basic())) == (400, "invalid_grant")


def test_what_is_outstanding_elsewhere_stays(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_hosts=BOTH)
    data = site.tokens(browser)
    change(site, redirect_hosts=["game.example.com"], name="Another name")
    assert site.refresh(data["refresh_token"]).status_code == 200
    change(site, redirect_hosts=["game.example.com", "new.example.com"])
    assert site.userinfo(data["access_token"]).status_code == 200


def test_an_exact_address_that_is_taken_away_ends_what_is_there(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_uris=[HERE, "https://game.example.com/other"])
    data = site.tokens(browser)
    change(site, redirect_uris=["https://game.example.com/other"])
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")


def test_a_waiting_authorization_ends_too(server: Server) -> None:
    site = new_site(server, redirect_hosts=BOTH, consent=True)
    somebody = new_browser(server).sign_in()
    page = somebody.authorize(site)
    change(site, redirect_hosts=["shop.example.com"])
    answer = somebody.submit(page, {"decision": "allow"})
    assert answer.status_code == 400
    assert "Location" not in answer.headers


def test_a_code_that_slipped_in_is_refused_at_its_redemption(server: Server, browser: Browser) -> None:
    """It was being made while the address was taken away."""
    site = new_site(server, redirect_hosts=BOTH)
    code = browser.code(site)
    sql = "UPDATE oauth_clients SET redirect_hosts = '{shop.example.com}' WHERE client_id = $1"
    query(server, sql, site.client_id)
    assert error_of(site.redeem(code)) == (400, "invalid_grant")


def test_without_tls_only_the_host_counts(server: Server, browser: Browser) -> None:
    """This server has none, and so answers at http addresses that nobody listed as such."""
    site = new_site(server, redirect_uri="http://game.example.com/cb", redirect_hosts=BOTH)
    token = site.tokens(browser)["refresh_token"]
    change(site, redirect_hosts=["game.example.com"])
    token = site.refresh(token).json()["refresh_token"]
    change(site, redirect_hosts=["shop.example.com"])
    assert site.refresh(token).status_code == 400


def test_a_host_that_is_no_longer_listed_without_tls_ends_what_is_there(server: Server, browser: Browser) -> None:
    site = new_site(server, redirect_uri="http://game.example.com/cb", redirect_hosts=["http://game.example.com"])
    code = browser.authorize(site)
    assert "code" in query_of(code)
    change(site, redirect_hosts=["game.example.com"])
    assert error_of(site.redeem(query_of(code)["code"])) == (400, "invalid_grant")
