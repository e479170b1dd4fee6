"""Sign-in with other providers: the whole way of each kind, its flows, and what players see when it fails."""

from pathlib import Path

import pytest

from tests.kit.browser import AuthenticatorApp, Forms, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game, outcome
from tests.kit.oauth import ACR_MFA, ACR_PASSWORD, new_site, query_of
from tests.kit.server import Server, running, until
from tests.upstream.player import (
    add_provider,
    callback_of,
    failure,
    follow,
    go,
    is_signed_in,
    link,
    player,
    press,
    sign_in,
    sign_out,
    to_provider,
)
from tests.upstream.stand_ins import CodeProvider, SteamStandIn


@pytest.mark.parametrize("kind", ["oidc", "oauth2"])
def test_linked_identity_signs_in(server: Server, provider: CodeProvider, kind: str) -> None:
    provider_id = add_provider(server, provider, kind)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    page = follow(browser, sign_in(browser, provider_id))
    assert page.status_code == 200
    assert browser.login in page.text
    assert is_signed_in(browser)


def test_steam_identity_signs_in(server: Server, steam: SteamStandIn) -> None:
    provider_id = add_provider(server, steam, "steam")
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    assert browser.login in follow(browser, sign_in(browser, provider_id)).text


def test_site_gets_its_code_after_the_sign_in(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser, site = player(server), new_site(server)
    link(browser, provider_id)
    sign_out(browser)
    page = browser.authorize(site)
    next_path = Forms(page.text).by_action["/login"][0]["next"]
    answer = follow(browser, sign_in(browser, provider_id, next_path))
    assert answer.status_code in (302, 303)
    assert answer.headers["Location"].startswith(site.redirect_uri)
    oidc = new_site(server, profile="oidc")
    claims = oidc.claims(oidc.tokens(browser)["id_token"])
    assert (claims["acr"], claims["amr"]) == (ACR_PASSWORD, ["fed"])
    assert site.redeem(query_of(answer)["code"]).status_code == 200


def test_game_is_confirmed_by_the_player_and_not_by_the_sign_in(server: Server, provider: CodeProvider) -> None:
    """A provider may sign in without any question, so a link to it must not complete the login of a game."""
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    with Game(server) as game:
        session = game.register()
        page = follow(browser, sign_in(browser, provider_id, session.page))
        assert str(page.url).endswith(session.decision)
        assert session.match in page.text
        assert session.status == "pending"
        press(browser, session.decision, f"{session.decision}/continue")
        assert outcome(session.poll())[0] == "OK"


def test_game_is_not_confirmed_by_keeping_a_closed_account(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    assert press(browser, "/account", "/account/delete", current_password=PASSWORD).status_code == 200
    with Game(server) as game:
        session = game.register()
        page = sign_in(browser, provider_id, session.page)
        assert page.status_code == 403
        answer = browser.http.post("/login/keep", data=Forms(page.text).by_action["/login/keep"][0])
        assert answer.headers["Location"] == session.decision
        assert session.status == "pending"
    # The provider may not have asked anything, so important changes still ask for the password.
    form = Forms(browser.http.get("/account").text).by_action["/account/delete"][0]
    assert "current_password" in form
    del form["current_password"]
    assert browser.http.post("/account/delete", data=form).status_code == 422


def test_second_factor_of_the_account_is_asked(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    server.apply({"users": [{"login": browser.login, "totp_secret": TOTP_SECRET}]})
    sign_out(browser)
    answer = sign_in(browser, provider_id, "/account")
    assert answer.headers["Location"] == "/login/code?next=/account"
    assert not is_signed_in(browser)
    answer = press(browser, "/login/code?next=/account", "/login/code", otp=AuthenticatorApp(TOTP_SECRET).code())
    assert answer.headers["Location"] == "/account"
    assert is_signed_in(browser)
    oidc = new_site(server, profile="oidc")
    claims = oidc.claims(oidc.tokens(browser)["id_token"])
    assert (claims["acr"], claims["amr"]) == (ACR_MFA, ["fed", "otp", "mfa"])


def test_banned_user_with_a_second_factor_learns_why(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    server.apply({"users": [{"login": browser.login, "totp_secret": TOTP_SECRET}]})
    sign_out(browser)
    server.sso("user", "ban", browser.login, "--reason", "Cheating")
    refused = sign_in(browser, provider_id)
    assert (refused.status_code, "Cheating" in refused.text) == (403, True), refused.text


def test_trusted_second_factor_replaces_that_of_the_account(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider, trusted_second_factor=True)
    browser = player(server)
    link(browser, provider_id)
    server.apply({"users": [{"login": browser.login, "totp_secret": TOTP_SECRET}]})
    sign_out(browser)
    sign_in(browser, provider_id)
    assert is_signed_in(browser)


def test_disabled_user_is_refused(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    server.apply({"users": [{"login": browser.login, "disabled": True}]})
    answer = sign_in(browser, provider_id)
    assert answer.status_code == 403
    assert "This account has been disabled." in answer.text
    assert not is_signed_in(browser)


def test_provider_that_is_down_has_a_friendly_text(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    callback = callback_of(browser, provider_id, "/account")
    provider.down = True
    answer = go(browser, callback)
    assert answer.status_code == 503
    assert "Elsewhere does not answer right now." in answer.text
    assert Forms(answer.text).by_action["/login"][0]["next"] == "/account"
    provider.down = False
    provider.large = True
    assert go(browser, callback_of(browser, provider_id)).status_code == 401
    assert "more than" in failure(server, provider_id)


def test_denied_sign_in_has_a_friendly_text(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    provider.wrong_answer = {"error": "access_denied", "error_description": "<script>alert(1)</script>"}
    answer = sign_in(browser, provider_id, "/account")
    assert answer.status_code == 401
    assert "You did not continue at Elsewhere." in answer.text
    assert "<script>alert" not in answer.text
    assert failure(server, provider_id) == "authorization error: access_denied"


def test_cookie_of_an_earlier_sign_in_is_renewed(server: Server, provider: CodeProvider) -> None:
    """Otherwise it would expire while the player is at the provider, or reads a mail for the new account."""
    path, browser = f"/login/upstream/{add_provider(server, provider)}", player(server)
    cookies = [browser.http.get(path).headers["Set-Cookie"] for _ in range(2)]
    assert len({cookie.partition(";")[0] for cookie in cookies}) == 1
    assert all("Max-Age=3600" in cookie for cookie in cookies)


def test_attempt_expires(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    callback = callback_of(browser, provider_id)
    expire_attempts(server, provider_id)
    answer = go(browser, callback)
    assert answer.status_code == 401
    assert "This sign-in has expired" in answer.text


def expire_attempts(server: Server, provider_id: str) -> None:
    query(server, "UPDATE upstream_attempts SET expires = now() WHERE provider_id = $1", provider_id)


def test_unknown_provider_is_not_found(server: Server) -> None:
    browser = player(server)
    for path in ("nobody", "nobody/callback?state=x&code=y", "%00", "a" * 200, "..%2f"):
        assert browser.http.get(f"/login/upstream/{path}").status_code == 404, path


def test_every_sign_in_form_has_the_buttons(server: Server, steam: SteamStandIn) -> None:
    added = server.sso("idp", "add", "stall", "--kind", "steam", "--name", "Stall & <Co>", "--issuer", steam.url)
    assert added.stdout == f"callback {server.base_url}/login/upstream/stall/callback\n"
    browser, site = player(server), new_site(server)
    button = "Continue with Stall &amp; &lt;Co&gt;"
    assert until(lambda: all(button in browser.http.get("/login").text for _ in range(10)))
    assert 'href="/login/upstream/stall"' in browser.http.get("/login").text
    assert 'href="/login/upstream/stall?next=/proxy/oauth/authorize/' in browser.authorize(site).text
    with Game(server) as game:
        session = game.register()
        assert 'href="/login/upstream/stall?next=/%3Fgsid%3D' in browser.http.get(session.page).text
    wrong = press(browser, "/login", "/login", login=browser.login, password="wrong")
    assert button in wrong.text
    assert "stall" in server.sso("idp", "list").stdout
    server.sso("idp", "delete", "stall", "--yes")
    assert until(lambda: not any(button in browser.http.get("/login").text for _ in range(10)))
    assert browser.http.get("/login/upstream/stall").status_code == 404


def test_requests_are_limited(server: Server, provider: CodeProvider, tmp_path: Path) -> None:
    provider_id = add_provider(server, provider)
    settings = {**server.settings, "SSO_RATE_UPSTREAM": "3", "SSO_WORKERS": "1", "SSO_BIND": "127.0.0.1:0"}
    with running(tmp_path, **settings) as limited:
        browser = player(limited)
        assert to_provider(browser, provider_id)
        answers = [browser.http.get(f"/login/upstream/{provider_id}/callback?state=x") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [401, 401, 429, 429]
        assert int(answers[-1].headers["Retry-After"]) <= 60
        assert "Too many attempts." in answers[-1].text
