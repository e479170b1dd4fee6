"""Signing out at a site's request."""

import pytest

from tests.kit.oauth import Browser, Site, new_browser, new_site, query_of
from tests.kit.server import Server

LOGOUT = "/proxy/oauth/logout"
BYE = "https://game.example.com/bye"


def signed_in(browser: Browser) -> bool:
    return browser.http.get("/account").status_code == 200


def test_with_an_id_token_of_the_user_the_session_ends_at_once(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    params = {"id_token_hint": hint, "post_logout_redirect_uri": BYE, "state": "x y"}
    answer = browser.http.get(LOGOUT, params=params)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(BYE)
    assert query_of(answer) == {"state": "x y"}
    assert not signed_in(browser)


def test_the_bytes_of_a_state_come_back_unchanged_asked_or_not(server: Server, oidc: Site) -> None:
    query = f"client_id={oidc.client_id}&post_logout_redirect_uri={BYE}&state=a%ff%fe+%20%2B"
    browser = new_browser(server).sign_in()
    answer = browser.submit(browser.http.get(f"{LOGOUT}?{query}"), {})
    assert answer.headers["Location"] == f"{BYE}?state=a%FF%FE%20%20%2B"
    assert not signed_in(browser)
    assert browser.http.get(f"{LOGOUT}?{query}").headers["Location"] == f"{BYE}?state=a%FF%FE%20%20%2B"


def test_too_long_a_state_is_refused(server: Server, oidc: Site) -> None:
    params = {"client_id": oidc.client_id, "post_logout_redirect_uri": BYE, "state": "s" * 4097}
    assert new_browser(server).http.get(LOGOUT, params=params).status_code == 400


def test_logout_with_an_id_token_of_a_disabled_client_asks_for_confirmation(server: Server) -> None:
    browser, site = new_browser(server).sign_in(), new_site(server, profile="oidc")
    hint = site.tokens(browser)["id_token"]
    server.sso("client", "disable", site.client_id)
    page = browser.http.get(LOGOUT, params={"id_token_hint": hint})
    assert page.status_code == 200
    assert signed_in(browser)


@pytest.mark.parametrize("name", ["id_token_hint", "client_id", "post_logout_redirect_uri", "state"])
def test_logout_with_a_repeated_parameter_is_refused(server: Server, oidc: Site, name: str) -> None:
    browser = new_browser(server).sign_in()
    sent = {"id_token_hint": oidc.tokens(browser)["id_token"], "client_id": oidc.client_id, "state": "x"}
    sent["post_logout_redirect_uri"] = BYE
    answer = browser.http.get(LOGOUT, params=[*sent.items(), (name, sent[name])])
    assert answer.status_code == 400
    assert signed_in(browser)


def test_without_one_people_are_asked(server: Server, oidc: Site) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server).sign_in()
    hint = oidc.tokens(other)["id_token"]
    for params in ({}, {"client_id": oidc.client_id}, {"id_token_hint": "garbage"}, {"id_token_hint": hint}):
        page = browser.http.get(LOGOUT, params=params)
        assert page.status_code == 200
        assert signed_in(browser)
    page = browser.http.get(LOGOUT, params={"client_id": oidc.client_id, "post_logout_redirect_uri": BYE})
    assert "https://game.example.com" in page.headers["Content-Security-Policy"]
    answer = browser.submit(page, {})
    assert answer.status_code == 303
    assert answer.headers["Location"] == BYE
    assert not signed_in(browser)


@pytest.mark.parametrize(
    "uri", ["https://evil.com/", "javascript:alert(1)", "https://game.example.com@evil.com/", "/x"]
)
def test_nobody_is_sent_to_an_address_that_is_not_the_sites(server: Server, oidc: Site, uri: str) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    answer = browser.http.get(LOGOUT, params={"id_token_hint": hint, "post_logout_redirect_uri": uri})
    assert answer.status_code == 400
    assert "Location" not in answer.headers
    assert signed_in(browser)


def test_an_address_without_a_site_is_refused(server: Server, oidc: Site) -> None:
    browser = new_browser(server)
    other = new_site(server, profile="oidc")
    hint = oidc.tokens(new_browser(server).sign_in())["id_token"]
    for params in (
        {},
        {"client_id": "nobody"},
        {"client_id": other.client_id, "id_token_hint": hint},
        {"client_id": "\0"},
    ):
        assert browser.http.get(LOGOUT, params={"post_logout_redirect_uri": BYE, **params}).status_code == 400


def test_a_sites_own_form_becomes_a_get(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    answer = browser.http.post(LOGOUT, data={"id_token_hint": hint}, headers={"Origin": "https://game.example.com"})
    assert answer.status_code == 303
    assert signed_in(browser)
    assert browser.http.get(answer.headers["Location"]).status_code == 200
    assert not signed_in(browser)


def test_a_forged_form_ends_nothing(server: Server) -> None:
    browser = new_browser(server).sign_in()
    assert browser.http.post(LOGOUT, data={"csrf": "x"}).status_code == 403
    assert signed_in(browser)


def test_tokens_of_sites_outlive_the_browser_session(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    data = oidc.tokens(browser)
    browser.http.get(LOGOUT, params={"id_token_hint": data["id_token"]})
    assert oidc.userinfo(data["access_token"]).status_code == 200
