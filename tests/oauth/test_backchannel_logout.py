"""OpenID Connect Back-Channel Logout: which changes notify which sites, and what a notification contains."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import jwt as pyjwt
import pytest

from tests.kit.browser import Browser as PageBrowser
from tests.kit.browser import fresh_browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.device import confirm, new_device_site, start_device
from tests.kit.logout_receiver import LogoutReceiver, logout_receiver
from tests.kit.oauth import Browser, Site, error_of, new_browser, new_site
from tests.kit.server import Server, until

LOGOUT = "/proxy/oauth/logout"
EVENT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture
def receiver() -> Iterator[LogoutReceiver]:
    with logout_receiver() as receiver:
        yield receiver


@pytest.fixture
def notified(server: Server, receiver: LogoutReceiver) -> Site:
    return new_site(server, profile="oidc", backchannel_logout_uri=receiver.uri)


def sid_of(site: Site, browser: Browser) -> str:
    """Signs in at the site. Returns the session of its ID token."""
    sid: str = site.claims(site.tokens(browser)["id_token"])["sid"]
    return sid


def is_nothing_queued(server: Server, site: Site) -> bool:
    return not query(server, "SELECT 1 FROM logout_notifications WHERE client_id = $1", site.client_id)


def on_account_page(server: Server, login: str, password: str = PASSWORD) -> PageBrowser:
    """Returns the account page of the user in another browser."""
    page = PageBrowser(server)
    assert page.sign_in(login, password).status_code == 303
    page.open_account()
    return page


def test_logout_at_the_request_of_a_site_notifies_it(
    server: Server, notified: Site, receiver: LogoutReceiver, browser: Browser
) -> None:
    browser = new_browser(server).sign_in()
    id_token = notified.tokens(browser)["id_token"]
    claims = notified.claims(id_token)
    assert browser.http.get(LOGOUT, params={"id_token_hint": id_token}).status_code == 200
    (request,) = receiver.wait()
    assert request.path == "/logout?from=sso"
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert set(request.form) == {"logout_token"}
    header, token = pyjwt.get_unverified_header(request.token), notified.claims(request.token)
    assert header["typ"] == "logout+jwt"
    assert header["alg"] == pyjwt.get_unverified_header(id_token)["alg"]
    assert set(token) == {"iss", "aud", "sub", "sid", "iat", "exp", "jti", "events", "kid"}
    assert token["iss"] == claims["iss"]
    assert token["aud"] == notified.client_id
    assert (token["sub"], token["sid"]) == (claims["sub"], claims["sid"])
    assert token["events"] == {EVENT: {}}
    assert 0 < token["exp"] - token["iat"] <= 120
    assert until(lambda: is_nothing_queued(server, notified))
    assert server.log_events("logout.notification_delivered")


def test_logout_token_is_no_id_token_hint(server: Server, notified: Site, receiver: LogoutReceiver) -> None:
    browser = new_browser(server).sign_in()
    browser.http.get(LOGOUT, params={"id_token_hint": notified.tokens(browser)["id_token"]})
    (request,) = receiver.wait()
    browser.sign_in()
    page = browser.http.get(LOGOUT, params={"id_token_hint": request.token})
    assert page.status_code == 200  # it asks for confirmation
    assert browser.http.get("/account").status_code == 200


def sign_out(server: Server, browser: Browser, site: Site) -> None:
    browser.submit(browser.http.get("/account"), {}, form=0)


def end_session_on_account_page(server: Server, browser: Browser, site: Site) -> None:
    with on_account_page(server, browser.login) as page:
        (row,) = query(
            server,
            """SELECT s.id FROM browser_sessions s JOIN users u USING (user_id) WHERE u.login = $1
            ORDER BY s.created LIMIT 1""",
            browser.login,
        )
        assert page.submit("/account/sessions/end", id=row["id"]).status_code == 303


def sign_out_everywhere_else(server: Server, browser: Browser, site: Site) -> None:
    with on_account_page(server, browser.login) as page:
        assert page.submit("/account/sessions/end-others").status_code == 303


def change_password(server: Server, browser: Browser, site: Site) -> None:
    new = "another one, longer"
    with on_account_page(server, browser.login) as page:
        fields = {"current_password": PASSWORD, "new_password": new, "repeat_password": new}
        assert page.submit("/account/password", **fields).status_code == 303


def delete_account(server: Server, browser: Browser, site: Site) -> None:
    with on_account_page(server, browser.login) as page:
        assert page.submit("/account/delete").status_code == 200


def disable_user(server: Server, browser: Browser, site: Site) -> None:
    server.sso("user", "disable", browser.login)


def set_password(server: Server, browser: Browser, site: Site) -> None:
    server.sso("user", "set-password", browser.login, "--password-stdin", stdin="another one, longer\n")


def remove_site(server: Server, browser: Browser, site: Site) -> None:
    with on_account_page(server, browser.login) as page:
        assert page.submit("/account/sites/remove", client_id=site.client_id).status_code == 303


def sign_in_as_another_user(server: Server, browser: Browser, site: Site) -> None:
    browser.login = new_browser(server).login
    fields = {"login": browser.login, "password": PASSWORD}
    page = browser.authorize(site, prompt="login")
    assert browser.submit(page, fields, form=0).status_code == 303


@pytest.mark.parametrize(
    "end",
    [
        sign_out, end_session_on_account_page, sign_out_everywhere_else, change_password, delete_account, disable_user,
        set_password, remove_site, sign_in_as_another_user,
    ],
)  # fmt: skip
def test_change_that_ends_a_session_notifies_the_site(
    server: Server, notified: Site, receiver: LogoutReceiver, end: Callable[[Server, Browser, Site], None]
) -> None:
    browser = new_browser(server).sign_in()
    sid = sid_of(notified, browser)
    end(server, browser, notified)
    (request,) = receiver.wait()
    assert notified.claims(request.token)["sid"] == sid


def test_sign_out_everywhere_else_does_not_notify_of_the_current_session(
    server: Server, notified: Site, receiver: LogoutReceiver
) -> None:
    here = new_browser(server).sign_in()
    there = Browser(server, here.login).sign_in()
    kept, ended = sid_of(notified, here), sid_of(notified, there)
    assert kept != ended
    page = here.http.get("/account")
    forms = [form for form in page.text.split("<form") if "/account/sessions/end-others" in form]
    csrf = forms[0].split('name="csrf" value="')[1].split('"')[0]
    assert here.http.post("/account/sessions/end-others", data={"csrf": csrf}).status_code == 303
    assert [notified.claims(request.token)["sid"] for request in receiver.wait()] == [ended]
    sign_out(server, here, notified)
    assert [notified.claims(request.token)["sid"] for request in receiver.wait(2)] == [ended, kept]


def test_only_the_sites_of_the_session_are_notified(
    server: Server, notified: Site, oidc: Site, receiver: LogoutReceiver
) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server).sign_in()
    unused = new_site(server, profile="oidc", backchannel_logout_uri=receiver.uri)
    sid, _, _ = sid_of(notified, browser), sid_of(notified, other), sid_of(oidc, browser)
    sign_out(server, browser, notified)
    (request,) = receiver.wait()
    assert notified.claims(request.token)["sid"] == sid
    for site in (unused, oidc):
        assert is_nothing_queued(server, site)


def test_disabled_client_is_not_notified(server: Server, notified: Site) -> None:
    browser = new_browser(server).sign_in()
    sid_of(notified, browser)
    server.sso("client", "disable", notified.client_id)
    sign_out(server, browser, notified)
    assert is_nothing_queued(server, notified)


def test_user_who_signs_in_again_continues_the_session(
    server: Server, notified: Site, receiver: LogoutReceiver
) -> None:
    browser = new_browser(server).sign_in()
    sid = sid_of(notified, browser)
    page = browser.authorize(notified, prompt="login")
    assert browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0).status_code == 303
    assert sid_of(notified, browser) == sid
    assert receiver.requests == []
    sign_out(server, browser, notified)
    assert [notified.claims(request.token)["sid"] for request in receiver.wait()] == [sid]
    browser.sign_in()
    assert sid_of(notified, browser) != sid


def test_refreshed_id_token_has_the_same_sid(server: Server, oidc: Site, browser: Browser) -> None:
    data = oidc.tokens(browser)
    sid = oidc.claims(data["id_token"])["sid"]
    assert oidc.claims(oidc.refresh(data["refresh_token"]).json()["id_token"])["sid"] == sid


def test_strict_client_gets_a_logout_token_without_sid(server: Server, receiver: LogoutReceiver) -> None:
    strict = new_site(server, backchannel_logout_uri=receiver.uri)
    browser = new_browser(server).sign_in()
    claims = strict.claims(strict.tokens(browser)["id_token"])
    assert "sid" not in claims
    sign_out(server, browser, strict)
    (request,) = receiver.wait()
    token = strict.claims(request.token)
    assert token["sub"] == claims["sub"]
    assert "sid" not in token


def test_code_of_a_session_that_has_ended_cannot_be_redeemed(server: Server, notified: Site) -> None:
    browser = new_browser(server).sign_in()
    code = browser.code(notified)
    sign_out(server, browser, notified)
    assert error_of(notified.redeem(code)) == (400, "invalid_grant")
    assert is_nothing_queued(server, notified)


def test_logout_token_is_signed_with_the_algorithm_of_the_id_tokens(server: Server, receiver: LogoutReceiver) -> None:
    site = new_site(server, profile="oidc", id_alg="EdDSA", backchannel_logout_uri=receiver.uri)
    browser = new_browser(server).sign_in()
    sid_of(site, browser)
    sign_out(server, browser, site)
    (request,) = receiver.wait()
    assert pyjwt.get_unverified_header(request.token)["alg"] == "EdDSA"
    assert site.claims(request.token)["aud"] == site.client_id


def test_discovery_announces_back_channel_logout(oidc: Site) -> None:
    document = oidc.http.get("/.well-known/openid-configuration").json()
    assert document["backchannel_logout_supported"] is True
    assert document["backchannel_logout_session_supported"] is True
    assert "sid" in document["claims_supported"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"backchannel_logout_uri": "http://site.example.com/"}, "backchannel_logout_uri: must be an https URI"),
        ({"backchannel_logout_uri": "https://u:p@site.example.com/"}, "backchannel_logout_uri: must be an https URI"),
        ({"backchannel_logout_uri": "https://site.example.com/#x"}, "backchannel_logout_uri: must be an https URI"),
        ({"backchannel_logout_uri": "file:///etc/passwd"}, "backchannel_logout_uri: must be an https URI"),
        ({"backchannel_logout_session_required": True}, "backchannel_logout_session_required: needs"),
    ],
)
def test_unusable_attributes_are_refused(server: Server, fields: dict[str, Any], message: str) -> None:
    record = {"client_id": "refused", "profile": "oidc", "redirect_hosts": ["site.example.com"], **fields}
    refused = server.sso("apply", "-", stdin=json.dumps({"clients": [record]}), check=False)
    assert refused.returncode == 1
    assert f"clients[0].{message}" in refused.stderr


def test_attributes_are_options_of_the_command_line(server: Server) -> None:
    uri = "https://site.example.com/logout"
    add = ("client", "add", "cli-notified", "--profile", "oidc", "--host", "site.example.com", "--public")
    server.sso(*add, "--backchannel-logout-uri", uri, "--backchannel-logout-session-required")
    shown = server.sso("client", "show", "cli-notified", "--json").stdout
    assert f'"backchannel_logout_uri": "{uri}"' in shown
    assert '"backchannel_logout_session_required": true' in shown
    refused = server.sso("client", "set", "cli-notified", "--backchannel-logout-uri", "http://x.example/", check=False)
    assert "--backchannel-logout-uri: must be an https URI" in refused.stderr


def test_session_of_a_device_ends_with_the_access_of_the_site_and_not_with_the_browser(
    server: Server, receiver: LogoutReceiver
) -> None:
    site = new_device_site(server, backchannel_logout_uri=receiver.uri)
    device, login = start_device(site), new_user(server)
    with fresh_browser(server, login) as browser:
        confirm(browser, device)
        sid = site.claims(device.ask().json()["id_token"])["sid"]
        browser.open_account()
        browser.submit("/logout")
        assert query(server, "SELECT sid FROM oauth_site_sessions WHERE client_id = $1", site.client_id)
        assert browser.sign_in(login).status_code == 303
        browser.open_account()
        browser.submit("/account/sites/remove", client_id=site.client_id)
    (request,) = receiver.wait()
    assert site.claims(request.token)["sid"] == sid
