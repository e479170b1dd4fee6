"""GET and POST /proxy/oauth/logout."""

import pytest

from tests.kit.browser import query, user_id_of
from tests.kit.oauth import Browser, Site, new_browser, new_site, query_of
from tests.kit.server import Server

LOGOUT = "/proxy/oauth/logout"
POST_LOGOUT_URI = "https://game.example.com/bye"


def is_signed_in(browser: Browser) -> bool:
    return browser.http.get("/account").status_code == 200


def test_logout_with_id_token_hint_of_the_user_ends_the_session_at_once(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    params = {"id_token_hint": hint, "post_logout_redirect_uri": POST_LOGOUT_URI, "state": "x y"}
    response = browser.http.get(LOGOUT, params=params)
    assert response.status_code == 303
    assert response.headers["Location"].startswith(POST_LOGOUT_URI)
    assert query_of(response) == {"state": "x y"}
    assert not is_signed_in(browser)


def test_logout_returns_the_state_unchanged(server: Server, oidc: Site) -> None:
    query = f"client_id={oidc.client_id}&post_logout_redirect_uri={POST_LOGOUT_URI}&state=a%ff%fe+%20%2B"
    browser = new_browser(server).sign_in()
    response = browser.submit(browser.http.get(f"{LOGOUT}?{query}"), {})
    assert response.headers["Location"] == f"{POST_LOGOUT_URI}?state=a%FF%FE%20%20%2B"
    assert not is_signed_in(browser)
    assert browser.http.get(f"{LOGOUT}?{query}").headers["Location"] == f"{POST_LOGOUT_URI}?state=a%FF%FE%20%20%2B"


def test_logout_with_too_long_state_is_refused(server: Server, oidc: Site) -> None:
    params = {"client_id": oidc.client_id, "post_logout_redirect_uri": POST_LOGOUT_URI, "state": "s" * 4097}
    assert new_browser(server).http.get(LOGOUT, params=params).status_code == 400


def test_logout_with_an_id_token_of_a_disabled_client_asks_for_confirmation(server: Server) -> None:
    browser, site = new_browser(server).sign_in(), new_site(server, profile="oidc")
    hint = site.tokens(browser)["id_token"]
    server.sso("client", "disable", site.client_id)
    page = browser.http.get(LOGOUT, params={"id_token_hint": hint})
    assert page.status_code == 200
    assert is_signed_in(browser)


@pytest.mark.parametrize("name", ["id_token_hint", "client_id", "post_logout_redirect_uri", "state"])
def test_logout_with_a_repeated_parameter_is_refused(server: Server, oidc: Site, name: str) -> None:
    browser = new_browser(server).sign_in()
    sent = {"id_token_hint": oidc.tokens(browser)["id_token"], "client_id": oidc.client_id, "state": "x"}
    sent["post_logout_redirect_uri"] = POST_LOGOUT_URI
    response = browser.http.get(LOGOUT, params=[*sent.items(), (name, sent[name])])
    assert response.status_code == 400
    assert is_signed_in(browser)


def test_logout_without_id_token_hint_asks_for_confirmation(server: Server, oidc: Site) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server).sign_in()
    hint = oidc.tokens(other)["id_token"]
    for params in ({}, {"client_id": oidc.client_id}, {"id_token_hint": "garbage"}, {"id_token_hint": hint}):
        page = browser.http.get(LOGOUT, params=params)
        assert page.status_code == 200
        assert is_signed_in(browser)
    page = browser.http.get(LOGOUT, params={"client_id": oidc.client_id, "post_logout_redirect_uri": POST_LOGOUT_URI})
    assert "https://game.example.com" in page.headers["Content-Security-Policy"]
    response = browser.submit(page, {})
    assert response.status_code == 303
    assert response.headers["Location"] == POST_LOGOUT_URI
    assert not is_signed_in(browser)


@pytest.mark.parametrize(
    "uri", ["https://evil.com/", "javascript:alert(1)", "https://game.example.com@evil.com/", "/x"]
)
def test_logout_never_redirects_to_a_foreign_address(server: Server, oidc: Site, uri: str) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    response = browser.http.get(LOGOUT, params={"id_token_hint": hint, "post_logout_redirect_uri": uri})
    assert response.status_code == 400
    assert "Location" not in response.headers
    assert is_signed_in(browser)


def test_post_logout_redirect_uri_without_a_known_client_is_refused(server: Server, oidc: Site) -> None:
    browser = new_browser(server)
    other = new_site(server, profile="oidc")
    hint = oidc.tokens(new_browser(server).sign_in())["id_token"]
    for params in (
        {},
        {"client_id": "unknown"},
        {"client_id": other.client_id, "id_token_hint": hint},
        {"client_id": "\0"},
    ):
        assert (
            browser.http.get(LOGOUT, params={"post_logout_redirect_uri": POST_LOGOUT_URI, **params}).status_code == 400
        )


def test_logout_form_of_a_client_is_redirected_to_get(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    response = browser.http.post(LOGOUT, data={"id_token_hint": hint}, headers={"Origin": "https://game.example.com"})
    assert response.status_code == 303
    assert is_signed_in(browser)
    assert browser.http.get(response.headers["Location"]).status_code == 200
    assert not is_signed_in(browser)


def test_logout_ends_a_session_whose_user_must_set_up_a_second_factor(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    hint = oidc.tokens(browser)["id_token"]
    user_id = user_id_of(server, browser.login)
    query(server, "UPDATE browser_sessions SET must_enrol = true WHERE user_id = $1", user_id)
    assert "You are signed out" in browser.http.get(LOGOUT, params={"id_token_hint": hint}).text
    assert query(server, "SELECT FROM browser_sessions WHERE user_id = $1", user_id) == []


def test_logout_with_wrong_csrf_token_is_refused(server: Server) -> None:
    browser = new_browser(server).sign_in()
    assert browser.http.post(LOGOUT, data={"csrf": "x"}).status_code == 403
    assert is_signed_in(browser)


def test_logout_does_not_revoke_tokens_of_clients(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    data = oidc.tokens(browser)
    browser.http.get(LOGOUT, params={"id_token_hint": data["id_token"]})
    assert oidc.userinfo(data["access_token"]).status_code == 200
