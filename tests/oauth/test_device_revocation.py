"""What ends a confirmed sign-in of a device and its tokens, and how its session differs from that of a game."""

from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.device import confirm, new_device_site, start_device, tokens_of, type_code
from tests.kit.game import Game, violation
from tests.kit.oauth import Site, error_of
from tests.kit.server import Server


def test_removed_site_gets_no_tokens_and_loses_those_it_has(
    server: Server, tv: Site, ann: str, anns_browser: Browser
) -> None:
    tokens = tokens_of(start_device(tv), anns_browser)
    device = start_device(tv)
    confirm(anns_browser, device)
    page = anns_browser.open_account()
    assert f"Site {tv.client_id}" in page.text
    assert anns_browser.submit("/account/sites/remove", client_id=tv.client_id).status_code == 303
    assert tv.userinfo(tokens["access_token"]).status_code == 401
    assert error_of(device.ask()) == (400, "invalid_grant")
    events = query(
        server, "SELECT kind FROM account_events e JOIN users USING (user_id) WHERE login = $1 ORDER BY e.id", ann
    )
    kinds = [row["kind"] for row in events]
    assert kinds.count("site_granted") >= 2
    assert kinds[-1] == "site_removed"


def test_disabled_client_and_signed_out_user_end_a_confirmed_sign_in(server: Server, tv: Site) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser, fresh_browser(server, login):
        device = start_device(tv)
        confirm(browser, device)
        browser.open_account()
        assert browser.submit("/account/sessions/end-others").status_code == 303
        assert error_of(device.ask()) == (400, "invalid_grant")
        site = new_device_site(server)
        device = start_device(site)
        confirm(browser, device)
        server.apply({"clients": [{"client_id": site.client_id, "disabled": True}]})
        assert error_of(device.ask()) == (401, "invalid_client")
        server.apply({"clients": [{"client_id": site.client_id, "disabled": False}]})
        assert error_of(device.ask()) == (400, "invalid_grant")


def test_client_that_loses_the_grant_type_gets_no_tokens(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server)
    device = start_device(site)
    confirm(anns_browser, device)
    server.apply({"clients": [{"client_id": site.client_id, "grant_types": ["refresh_token"]}]})
    assert error_of(device.ask()) == (400, "unauthorized_client")


def test_change_of_redirect_uris_does_not_end_the_tokens_of_devices(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server)
    tokens = tokens_of(start_device(site), anns_browser)
    server.apply({"clients": [{"client_id": site.client_id, "redirect_hosts": ["other.example.com"]}]})
    assert site.userinfo(tokens["access_token"]).status_code == 200


def test_consent_is_saved_for_a_client_that_needs_it(server: Server, ann: str, anns_browser: Browser) -> None:
    site = new_device_site(server, consent=True)
    tokens_of(start_device(site, scope="openid email"), anns_browser)
    rows = query(server, "SELECT scopes FROM oauth_consents WHERE client_id = $1", site.client_id)
    assert [sorted(row["scopes"]) for row in rows] == [["email", "openid"]]


def test_session_of_a_device_does_not_exist_for_games(server: Server, tv: Site, anns_browser: Browser) -> None:
    """Otherwise a client with few scopes could get the login of a game, which has all rights of the user."""
    device = start_device(tv)
    confirm(anns_browser, device)
    gsid, secret = device.device_code.split(".")
    with Game(server, "127.0.0.1") as game:
        for headers in ({}, {"Location": secret}, {"Ip": "127.0.0.1"}):
            for what in ("getGsidResult", "closeGsid"):
                violation(game.ask(what, gsid, headers, status="Success"))
        violation(game.ask("info", gsid))
    assert device.row()["status"] == "confirmed"
    assert device.ask().status_code == 200


def test_device_of_a_first_party_client_counts_as_a_game(server: Server, tv: Site) -> None:
    """Its token may be exchanged for a user JWT with a factor: the page warns, and SSO_GSID_ADMIN applies."""
    login = new_user(server)
    server.sso("role", "assign", login, "root", "--yes")
    site, warning = new_device_site(server, first_party=True), "You have administrative rights here. The device"
    with fresh_browser(server, login) as browser:
        assert warning not in type_code(browser, start_device(tv).user_code).text
        device = start_device(site)
        assert warning in type_code(browser, device.user_code).text
        access_token = tokens_of(device, browser)["access_token"]
    headers = {"Authorization": f"Bearer {access_token}", "Factor": "device-1"}
    claims = site.claims(site.http.post("/proxy/oauth/exchangeToken", headers=headers).json()["token"])
    assert (claims["auth"], "fac" in claims) == ("gsid", True)
