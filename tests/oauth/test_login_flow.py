"""An authorization with a sign-in: prompts, consent, choice of the account."""

import re
import time
from urllib.parse import quote

import httpx
import pyotp
import pytest

from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import Browser, Site, new_browser, new_site, next_path_of, pkce, query_of
from tests.kit.server import Server

SIGN_IN = "/login?next=/proxy/oauth/authorize/"


def follow(browser: Browser, response: httpx.Response) -> httpx.Response:
    return browser.http.get(response.headers["Location"])


def sent_to_sign_in(response: httpx.Response) -> bool:
    return response.status_code in (302, 303) and response.headers["Location"].startswith(SIGN_IN)


def asks_to_sign_in(response: httpx.Response) -> bool:
    return response.status_code == 200 and 'action="/login"' in response.text


def type_password(browser: Browser, page: httpx.Response, login: str = "") -> httpx.Response:
    assert page.status_code == 200, page.headers
    return browser.submit(page, {"login": login or browser.login, "password": PASSWORD})


def test_user_signs_in_and_returns_to_the_client_with_a_code(server: Server, site: Site) -> None:
    browser = new_browser(server)
    page = browser.authorize(site)
    assert asks_to_sign_in(page)
    assert f"Site {site.client_id}" in page.text
    back = type_password(browser, page)
    assert back.status_code == 303
    parameters = query_of(back)
    assert parameters["state"] == "s-1"
    assert site.redeem(parameters["code"]).status_code == 200


def test_second_factor_is_requested_before_the_code_is_issued(server: Server, site: Site) -> None:
    browser = new_browser(server, totp_secret=TOTP_SECRET)
    entered = type_password(browser, browser.authorize(site))
    assert entered.headers["Location"].startswith("/login/code?next=/proxy/oauth/authorize/")
    page = follow(browser, entered)
    assert "https://game.example.com" in page.headers["Content-Security-Policy"]
    response = browser.submit(page, {"otp": pyotp.TOTP(TOTP_SECRET).now()}, form=0)
    assert "code" in query_of(response)


def test_another_account_at_the_second_factor_continues_the_authorization(server: Server, site: Site) -> None:
    browser = new_browser(server, totp_secret=TOTP_SECRET)
    page = follow(browser, type_password(browser, browser.authorize(site)))
    assert sent_to_sign_in(browser.submit(page, {}))


def test_another_account_at_the_second_factor_leaves_the_earlier_session(server: Server, oidc: Site) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server, totp_secret=TOTP_SECRET)
    signed_in = browser.http.cookies["sso_session"]
    page = follow(browser, type_password(browser, browser.authorize(oidc, prompt="login"), login=other.login))
    assert page.url.path == "/login/code"
    assert browser.http.post("/logout", data={"csrf": "of another page"}).status_code == 403
    answer = browser.submit(page, {})
    assert sent_to_sign_in(answer)
    assert asks_to_sign_in(follow(browser, answer))
    assert browser.http.get("/login/code").headers["Location"] == "/login"
    assert browser.http.cookies["sso_session"] == signed_in
    assert browser.http.get("/account/history").status_code == 200
    # With the token of its own, the session ends also while another sign-in lacks the second factor.
    account = browser.http.get("/account")
    follow(browser, type_password(browser, follow(browser, answer), login=other.login))
    assert browser.submit(account, {}, form=0).headers["Location"] == "/login"
    assert browser.http.get("/account/history").status_code == 303


def test_another_account_at_the_second_factor_ends_a_session_that_would_be_continued(
    server: Server, oidc: Site
) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server, totp_secret=TOTP_SECRET)
    page = follow(browser, type_password(browser, browser.authorize(oidc, prompt="login"), login=other.login))
    answer = browser.submit(page, {"next": "/account/history"})
    assert answer.headers["Location"] == "/login?next=/account/history"
    assert asks_to_sign_in(follow(browser, answer))


def test_form_action_allows_the_client_only_during_its_authorization(server: Server, site: Site) -> None:
    browser = new_browser(server)
    page = browser.authorize(site)
    assert "form-action 'self' https://game.example.com;" in page.headers["Content-Security-Policy"]
    assert "form-action 'self';" in browser.http.get("/login").headers["Content-Security-Policy"]
    unknown = browser.http.get(SIGN_IN + "x" * 43)
    assert "form-action 'self';" in unknown.headers["Content-Security-Policy"]


def test_form_action_allows_the_client_also_if_pages_of_ours_come_between(server: Server, site: Site) -> None:
    """The form leads from one to the next, as after the setup of a second factor, and then to the client."""
    browser, allowed = new_browser(server), "form-action 'self' https://game.example.com;"
    path = next_path_of(browser.authorize(site))
    for page in ("/login", "/account/recovery-codes", "/login", "/account/terms"):
        path = f"{page}?next={quote(path)}"
        shown = browser.http.get("/login", params={"next": path})
        assert allowed in shown.headers["Content-Security-Policy"], path
    endless = browser.http.get("/login", params={"next": "/login?next=" * 300 + path})
    assert "form-action 'self';" in endless.headers["Content-Security-Policy"]


def test_unknown_pending_authorization_shows_an_error_page(server: Server, browser: Browser) -> None:
    for path in ("/proxy/oauth/authorize/" + "x" * 43, "/proxy/oauth/authorize/x", "/proxy/oauth/authorize/%00"):
        response = browser.http.get(path)
        assert response.status_code == 400
        assert "Location" not in response.headers


def test_wrong_password_shows_the_form_again(server: Server, site: Site) -> None:
    browser = new_browser(server)
    response = browser.submit(browser.authorize(site), {"login": browser.login, "password": "wrong"})
    assert response.status_code == 401
    assert "https://game.example.com" in response.headers["Content-Security-Policy"]


def test_prompt_none_never_shows_a_page(server: Server, site: Site, browser: Browser) -> None:
    assert query_of(new_browser(server).authorize(site, prompt="none"))["error"] == "login_required"
    assert "code" in query_of(browser.authorize(site, prompt="none"))
    wants_consent = new_site(server, consent=True)
    assert query_of(browser.authorize(wants_consent, prompt="none"))["error"] == "consent_required"


def test_prompt_login_requires_a_new_sign_in(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    page = browser.authorize(oidc, prompt="login")
    assert asks_to_sign_in(page)
    # Continuing without a new sign-in leads back to the form.
    assert sent_to_sign_in(browser.http.get(next_path_of(page)))
    back = type_password(browser, page)
    claims = oidc.claims(oidc.redeem(query_of(back)["code"]).json()["id_token"])
    assert abs(claims["auth_time"] - time.time()) < 60


def test_max_age_requires_a_new_sign_in_if_the_session_is_too_old(server: Server, oidc: Site) -> None:
    browser = new_browser(server).sign_in()
    assert browser.code(oidc, max_age="3600")
    time.sleep(1.1)
    page = browser.authorize(oidc, max_age="1")
    assert asks_to_sign_in(page)
    assert "code" in query_of(type_password(browser, page))
    assert query_of(browser.authorize(oidc, max_age="0", prompt="none"))["error"] == "login_required"


def test_login_hint_fills_in_the_form(server: Server, site: Site) -> None:
    browser = new_browser(server)
    page = browser.authorize(site, login_hint='ann"<@example.com')
    assert 'value="ann&#34;&lt;@example.com"' in page.text


def test_id_token_hint_accepts_only_its_user(server: Server, oidc: Site) -> None:
    ann, bob = new_browser(server).sign_in(), new_browser(server).sign_in()
    hint = oidc.tokens(ann)["id_token"]
    assert ann.code(oidc, id_token_hint=hint, prompt="none")
    assert query_of(bob.authorize(oidc, id_token_hint=hint, prompt="none"))["error"] == "login_required"
    back = type_password(bob, bob.authorize(oidc, id_token_hint=hint))
    assert query_of(back)["error"] == "login_required"
    other = new_site(server, profile="oidc")
    assert query_of(ann.authorize(other, id_token_hint=hint))["error"] == "invalid_request"


def test_consent_is_asked_for_once_and_remembered(server: Server) -> None:
    site, browser = new_site(server, consent=True), new_browser(server).sign_in()
    page = browser.authorize(site, scope="openid email")
    assert page.status_code == 200
    assert "your e-mail address" in page.text
    assert "https://game.example.com" in page.headers["Content-Security-Policy"]
    response = browser.submit(page, {"decision": "allow"})
    assert response.status_code == 303
    assert site.redeem(query_of(response)["code"]).status_code == 200
    assert browser.code(site, scope="openid email")
    assert browser.code(site, scope="openid")
    assert browser.authorize(site, scope="openid email profile").status_code == 200  # a scope without consent
    assert browser.authorize(site, scope="openid", prompt="consent").status_code == 200


def test_first_party_program_on_this_machine_is_asked_about_each_time(server: Server) -> None:
    """Any program can listen on a port of the machine and use the id of a public client (RFC 8252 section 8.6)."""
    loopback = {"redirect_hosts": [], "redirect_uris": ["http://127.0.0.1/callback"]}
    site = new_site(
        server,
        public=True,
        profile="oidc",
        first_party=True,
        redirect_uri="http://127.0.0.1:41001/callback",
        **loopback,
    )
    browser, challenge = new_browser(server).sign_in(), {"code_challenge": pkce()[1], "code_challenge_method": "S256"}
    asked = browser.authorize(site, **challenge)
    assert (asked.status_code, "port 41001" in asked.text) == (200, True)
    assert "code" in query_of(browser.submit(asked, {"decision": "allow"}))
    other = browser.authorize(site, redirect_uri="http://127.0.0.1:41002/callback", **challenge)
    assert (other.status_code, "port 41002" in other.text) == (200, True)
    silent = browser.authorize(site, prompt="none", **challenge)
    assert query_of(silent)["error"] == "consent_required"


def test_denied_consent_is_access_denied(server: Server) -> None:
    site, browser = new_site(server, consent=True), new_browser(server).sign_in()
    response = browser.submit(browser.authorize(site), {"decision": "deny"})
    assert response.status_code == 303
    assert query_of(response)["error"] == "access_denied"
    assert query_of(response)["state"] == "s-1"
    assert browser.authorize(site).status_code == 200


def test_consent_follows_a_sign_in(server: Server) -> None:
    site, browser = new_site(server, consent=True), new_browser(server)
    page = follow(browser, type_password(browser, browser.authorize(site)))
    assert page.status_code == 200
    assert "code" in query_of(browser.submit(page, {"decision": "allow"}))


@pytest.mark.parametrize("forgery", ["no token", "token of another session", "another origin"])
def test_consent_requires_a_csrf_token_and_the_own_origin(server: Server, forgery: str) -> None:
    site, browser = new_site(server, consent=True), new_browser(server).sign_in()
    page = browser.authorize(site)
    fields = {"decision": "allow"}
    headers = {}
    if forgery == "no token":
        fields["csrf"] = ""
    elif forgery == "token of another session":
        other = new_browser(server).sign_in().authorize(site)
        match = re.search(r'name="csrf" value="([^"]*)"', other.text)
        assert match
        fields["csrf"] = match[1]
    else:
        headers = {"Origin": "https://evil.com", "Sec-Fetch-Site": "cross-site"}
    response = browser.submit(page, fields, headers=headers)
    assert response.status_code == 403
    assert "Location" not in response.headers


def test_prompt_select_account_asks_to_confirm_the_account(server: Server, site: Site) -> None:
    browser = new_browser(server).sign_in()
    page = browser.authorize(site, prompt="select_account")
    assert page.status_code == 200
    assert "Continue as Ann" in page.text
    assert "code" in query_of(browser.submit(page, {"decision": "allow"}))


def test_user_can_choose_another_account(server: Server, oidc: Site) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server)
    response = browser.submit(browser.authorize(oidc, prompt="select_account"), {"decision": "other"})
    assert sent_to_sign_in(response)
    back = type_password(browser, follow(browser, response), login=other.login)
    data = oidc.redeem(query_of(back)["code"]).json()
    expected = oidc.claims(oidc.tokens(other.sign_in())["id_token"])
    assert oidc.claims(data["id_token"])["sub"] == expected["sub"]


def test_ended_session_requires_a_new_sign_in(server: Server, site: Site) -> None:
    browser = new_browser(server).sign_in()
    assert browser.code(site)
    server.sso("user", "end-sessions", browser.login)
    assert asks_to_sign_in(browser.authorize(site))


def test_names_of_clients_and_users_are_escaped(server: Server) -> None:
    site = new_site(server, name='<img src=x onerror="alert(1)">', consent=True)
    browser = new_browser(server, nick="</bdi><script>alert(1)</script>").sign_in()
    for page in (browser.authorize(site), new_browser(server).authorize(site)):
        assert "<img" not in page.text
        assert "<script>" not in page.text


def test_account_page_lists_a_site_until_its_access_is_removed(server: Server) -> None:
    site, browser = new_site(server, consent=True, name="Tank Shop"), new_browser(server).sign_in()
    assert "<bdi>Tank Shop</bdi></h3>" not in browser.http.get("/account").text
    response = browser.submit(browser.authorize(site, scope="openid email offline_access"), {"decision": "allow"})
    data = site.redeem(query_of(response)["code"]).json()
    page = browser.http.get("/account")
    assert "Tank Shop" in page.text
    assert "your e-mail address" in page.text
    done = browser.submit(page, {"client_id": site.client_id})
    assert done.headers["Location"] == "/account?done=site-removed#sites"
    assert "<bdi>Tank Shop</bdi></h3>" not in browser.http.get("/account").text
    assert site.userinfo(data["access_token"]).status_code == 401
    assert site.refresh(data["refresh_token"]).status_code == 400
    assert browser.authorize(site).status_code == 200  # the user must consent again
