"""POST /proxy/oauth/token with grant_type=refresh_token: a grant has one valid refresh token at a time."""

import base64
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import jwt as pyjwt
import pytest

from tests.kit.browser import query
from tests.kit.oauth import Browser, Site, error_of, new_browser, new_site, next_path_of
from tests.kit.postgres import Postgres
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import QUICK, Server, running, until

INVALID_TOKEN = {"strict": (400, "invalid_request"), "oidc": (400, "invalid_grant")}


@pytest.fixture(params=["strict", "oidc"])
def either(request: pytest.FixtureRequest, site: Site, oidc: Site) -> Site:
    return site if request.param == "strict" else oidc


def test_refresh_returns_new_tokens_with_the_same_claims(either: Site, browser: Browser) -> None:
    data = either.tokens(browser, scope="openid offline_access email", nonce="n-7")
    response = either.refresh(data["refresh_token"])
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    again = response.json()
    assert set(again) == {"access_token", "id_token", "token_type", "expires_in", "refresh_token"}
    assert again["refresh_token"] != data["refresh_token"]
    assert again["access_token"] != data["access_token"]
    before, after = either.claims(data["id_token"]), either.claims(again["id_token"])
    assert after["nonce"] == "n-7"
    assert {**before, "iat": 0, "exp": 0} == {**after, "iat": 0, "exp": 0}
    assert either.userinfo(again["access_token"]).json()["email"] == browser.login


def test_replaced_token_of_a_strict_client_is_refused_and_the_grant_stays_valid(site: Site, browser: Browser) -> None:
    first = site.tokens(browser)["refresh_token"]
    second = site.refresh(first).json()["refresh_token"]
    third = site.refresh(second).json()
    for old in (first, second):
        assert error_of(site.refresh(old)) == (400, "invalid_request")
    assert site.userinfo(third["access_token"]).status_code == 200
    assert site.refresh(third["refresh_token"]).status_code == 200


def test_replaced_token_of_an_oidc_client_revokes_the_grant(oidc: Site, browser: Browser) -> None:
    first = oidc.tokens(browser)["refresh_token"]
    second = oidc.refresh(first).json()["refresh_token"]
    third = oidc.refresh(second).json()
    assert error_of(oidc.refresh(first)) == (400, "invalid_grant")
    assert error_of(oidc.refresh(third["refresh_token"])) == (400, "invalid_grant")
    assert oidc.userinfo(third["access_token"]).status_code == 401


def test_refresh_by_another_client_is_refused_and_the_token_stays_valid(
    server: Server, either: Site, browser: Browser
) -> None:
    token = either.tokens(browser)["refresh_token"]
    other = new_site(server, profile=either.profile)
    assert error_of(either.refresh(token, other.bearer())) == (401, "invalid_client")
    uri = "https://game.example.com/other"
    assert error_of(either.refresh(token, either.bearer(uri), redirect_uri=uri)) == (400, "invalid_grant")
    assert either.refresh(token).status_code == 200


def test_authenticated_client_cannot_use_the_token_of_another_client(
    server: Server, oidc: Site, browser: Browser
) -> None:
    token, other = oidc.tokens(browser)["refresh_token"], new_site(server, profile="oidc")
    assert error_of(other.refresh(token, other.basic())) == (400, "invalid_grant")
    assert error_of(other.refresh(token, other.basic("wrong"))) == (401, "invalid_client")
    assert oidc.refresh(token).status_code == 200


def test_redirect_uri_is_required_for_strict_clients_only(site: Site, oidc: Site, browser: Browser) -> None:
    token = site.tokens(browser)["refresh_token"]
    assert error_of(site.refresh(token, redirect_uri=None)) == (400, "invalid_request")
    assert site.refresh(token).status_code == 200
    token = oidc.tokens(browser)["refresh_token"]
    token = oidc.refresh(token, redirect_uri=None).json()["refresh_token"]
    assert oidc.refresh(token, oidc.basic(), redirect_uri=None).status_code == 200


@pytest.mark.parametrize("method", ["basic", "post"])
def test_oidc_client_may_authenticate_with_every_standard_method(oidc: Site, browser: Browser, method: str) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    headers = oidc.basic() if method == "basic" else {}
    more = {} if method == "basic" else {"client_id": oidc.client_id, "client_secret": oidc.secret}
    wrong = oidc.basic("wrong") if method == "basic" else {}
    wrong_more = {} if method == "basic" else {"client_id": oidc.client_id, "client_secret": "wrong"}
    assert error_of(oidc.refresh(token, wrong, **wrong_more)) == (401, "invalid_client")
    assert oidc.refresh(token, headers, **more).status_code == 200


def test_scope_parameter_is_ignored(site: Site, browser: Browser) -> None:
    token = site.tokens(browser, scope="openid offline_access")["refresh_token"]
    data = site.refresh(token, scope="openid email profile trust").json()
    assert site.claims(data["refresh_token"])["scopes"] == "openid offline_access"
    assert set(site.userinfo(data["access_token"]).json()) == {"status", "sub"}


def changed(token: str, part: int, **changes: Any) -> str:
    parts = token.split(".")
    raw = json.loads(base64.urlsafe_b64decode(parts[part] + "=" * (-len(parts[part]) % 4)))
    parts[part] = base64.urlsafe_b64encode(json.dumps({**raw, **changes}).encode()).decode().rstrip("=")
    return ".".join(parts)


def test_tampered_token_is_refused(site: Site, browser: Browser) -> None:
    data = site.tokens(browser)
    token = data["refresh_token"]
    head, body, signature = token.split(".")
    claims = pyjwt.decode(token, options={"verify_signature": False})
    kid = pyjwt.get_unverified_header(token)["kid"]
    foreign = rsa_key()
    flipped = signature[:9] + ("A" if signature[9] != "A" else "B") + signature[10:]
    for bad in (
        changed(token, 1, scopes="openid offline_access email"),
        changed(token, 1, exp=claims["exp"] + 1),
        changed(token, 0, alg="none"),
        changed(token, 0, kid="x"),
        f"{head}.{body}.{flipped}",
        f"{head}.{body}.",
        f"{head}.{body}",
        pyjwt.encode(claims, foreign, algorithm="RS256", headers={"kid": kid}),
        pyjwt.encode(claims, "x" * 40, algorithm="HS256", headers={"kid": kid}),
        data["id_token"],
        data["access_token"],
        "garbage",
        "é🎮",
    ):
        assert error_of(site.refresh(bad)) == (400, "invalid_request"), bad
    assert site.refresh(token).status_code == 200


def test_malformed_token_of_an_oidc_client_is_an_invalid_grant(oidc: Site) -> None:
    assert error_of(oidc.refresh("garbage", oidc.basic())) == (400, "invalid_grant")
    assert error_of(oidc.refresh("garbage", oidc.basic("wrong"))) == (401, "invalid_client")


def test_disabled_user_cannot_refresh_even_after_being_enabled_again(server: Server, either: Site) -> None:
    browser = new_browser(server).sign_in()
    data = either.tokens(browser)
    server.sso("user", "disable", browser.login)
    assert error_of(either.refresh(data["refresh_token"])) == INVALID_TOKEN[either.profile]
    assert either.userinfo(data["access_token"]).status_code == 401
    server.sso("user", "enable", browser.login)
    assert error_of(either.refresh(data["refresh_token"])) == INVALID_TOKEN[either.profile]
    assert either.userinfo(data["access_token"]).status_code == 401


def test_password_change_revokes_grants(server: Server, either: Site) -> None:
    browser = new_browser(server).sign_in()
    data = either.tokens(browser)
    server.sso("user", "set-password", browser.login, "--password-stdin", stdin="another one\n")
    assert error_of(either.refresh(data["refresh_token"])) == INVALID_TOKEN[either.profile]
    assert either.userinfo(data["access_token"]).status_code == 401


def test_disabled_client_cannot_use_codes_or_tokens(server: Server, browser: Browser) -> None:
    site = new_site(server)
    data, code = site.tokens(browser), browser.code(site)
    server.sso("client", "disable", site.client_id)
    assert site.userinfo(data["access_token"]).status_code == 401
    assert site.refresh(data["refresh_token"]).status_code == 401
    assert site.redeem(code).status_code in (400, 401)
    server.sso("client", "enable", site.client_id)
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")
    assert site.tokens(browser)


def test_old_and_new_secret_are_valid_until_the_rotation_is_finished(server: Server, browser: Browser) -> None:
    site = new_site(server)
    token = site.tokens(browser)["refresh_token"]
    old = site.secret
    new = server.sso("client", "rotate-secret", site.client_id).stdout.split()[-1]
    token = site.refresh(token, site.bearer(secret=new)).json()["refresh_token"]
    token = site.refresh(token, site.bearer(secret=old)).json()["refresh_token"]
    assert site.redeem(browser.code(site), site.bearer(secret=new)).status_code == 200
    server.sso("client", "rotate-secret", site.client_id, "--finish")
    assert error_of(site.refresh(token, site.bearer(secret=old))) == (401, "invalid_client")
    assert error_of(site.redeem(browser.code(site), site.bearer(secret=old))) == (401, "invalid_client")
    assert site.refresh(token, site.bearer(secret=new)).status_code == 200


@pytest.fixture(scope="module")
def short_lived(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with tokens that expire within seconds, and with a leeway of a minute.

    Tests move the times in the database instead of waiting for a minute, so that they do not depend on the machine.
    """
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_OAUTH_SESSION_S": "60",
        "SSO_REFRESH_TTL_S": "5",
        "SSO_GRANT_MAX_S": "7",
        "SSO_ACCESS_TTL_S": "2",
        "SSO_REFRESH_LEEWAY_S": "60",
    }
    with running(tmp_path_factory.mktemp("short_lived"), **settings) as server:
        yield server


def test_codes_and_tokens_expire_at_the_configured_time(short_lived: Server) -> None:
    site, browser = new_site(short_lived), new_browser(short_lived).sign_in()
    code, data = browser.code(site), site.tokens(browser)
    pending = next_path_of(new_browser(short_lived).authorize(site))
    assert data["expires_in"] == 2
    claims = site.claims(data["refresh_token"])
    assert claims["exp"] - claims["iat"] == 5
    query(short_lived, "UPDATE oauth_codes SET expires = expires - interval '60 s'")
    query(short_lived, "UPDATE oauth_requests SET expires = expires - interval '60 s'")
    assert error_of(site.redeem(code)) == (400, "invalid_grant")
    assert browser.http.get(pending).status_code == 400
    time.sleep(max(0.0, claims["iat"] + 3.2 - time.time()))
    assert error_of(site.userinfo(data["access_token"])) == (401, "invalid_token")
    time.sleep(max(0.0, claims["exp"] + 0.2 - time.time()))
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")


def test_refreshed_tokens_expire_no_later_than_the_grant(short_lived: Server) -> None:
    site, browser = new_site(short_lived), new_browser(short_lived).sign_in()
    data = site.tokens(browser)
    start = site.claims(data["id_token"])["iat"]
    while time.time() < start + 3:
        time.sleep(0.9)
        response = site.refresh(data["refresh_token"])
        if response.status_code != 200:
            assert time.time() >= site.claims(data["refresh_token"])["exp"], "refused before its end"
            break
        data = response.json()
        assert site.claims(data["refresh_token"])["exp"] <= start + 7
        assert site.claims(data["id_token"])["iat"] + data["expires_in"] <= start + 7
    time.sleep(max(0.0, start + 7.1 - time.time()))
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")


@pytest.mark.parametrize("profile", ["strict", "oidc"])
def test_retry_within_the_leeway_returns_the_same_refresh_token(short_lived: Server, profile: str) -> None:
    site, browser = new_site(short_lived, profile=profile), new_browser(short_lived).sign_in()
    first = site.tokens(browser)["refresh_token"]
    lost, again = site.refresh(first).json(), site.refresh(first).json()
    # The same new token: there is never more than one valid token.
    assert site.claims(lost["refresh_token"]) == site.claims(again["refresh_token"])
    assert site.userinfo(again["access_token"]).status_code == 200
    after = site.refresh(lost["refresh_token"]).json()
    # The new token was used, so the old one cannot be retried.
    assert error_of(site.refresh(first)) == INVALID_TOKEN[profile]
    alive = site.refresh(after["refresh_token"]).status_code
    assert alive == (200 if profile == "strict" else 400)


def test_retry_after_the_leeway_is_refused(short_lived: Server) -> None:
    site, browser = new_site(short_lived), new_browser(short_lived).sign_in()
    first = site.tokens(browser)["refresh_token"]
    second = site.refresh(first).json()["refresh_token"]
    query(short_lived, "UPDATE oauth_grants SET rotated = rotated - interval '60 s'")
    assert error_of(site.refresh(first)) == (400, "invalid_request")
    assert site.refresh(second).status_code == 200


def test_rotation_survives_a_crash_of_the_workers(
    postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2"}
    with running(tmp_path_factory.mktemp("crash"), **settings) as server:
        site, browser = new_site(server), new_browser(server).sign_in()
        code = browser.code(site)
        first = site.redeem(code).json()["refresh_token"]
        second = site.refresh(first).json()["refresh_token"]
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        assert until(lambda: len(server.workers()) == 2)
        site = Site(server, site.client_id, site.secret)
        assert error_of(site.refresh(first)) == (400, "invalid_request")
        second = site.refresh(second).json()["refresh_token"]
        assert error_of(site.redeem(code)) == (400, "invalid_grant")
        assert error_of(site.refresh(second)) == (400, "invalid_request")  # the replay of the code revoked the grant


def test_malformed_token_of_an_authenticated_client_is_not_an_invalid_client(site: Site, oidc: Site) -> None:
    for client, code in ((site, "invalid_request"), (oidc, "invalid_grant")):
        form = {
            "grant_type": "refresh_token",
            "refresh_token": "garbage",
            "redirect_uri": client.redirect_uri,
            "client_id": client.client_id,
        }
        response = client.http.post("/proxy/oauth/token", data=form, headers=client.bearer())
        assert error_of(response) == (400, code)


def test_failed_client_authentication_is_logged_and_does_not_use_up_the_token(
    server: Server, either: Site, browser: Browser
) -> None:
    token = either.tokens(browser)["refresh_token"]
    before = len(server.log_events("oauth.refresh_not_authenticated"))
    for _ in range(30):
        response = either.refresh(token, headers=either.bearer(secret="wrong"))
        assert error_of(response) == (401, "invalid_client")
    assert either.refresh(token).status_code == 200
    events = server.log_events("oauth.refresh_not_authenticated")[before:]
    assert [event["client"] for event in events] == [either.client_id] * 30
