"""POST /proxy/oauth/token with grant_type=authorization_code."""

import time
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from tests.kit.oauth import TOKEN, Browser, Site, error_of, new_browser, new_site, pkce
from tests.kit.server import Server

ID_CLAIMS = {"typ", "aud", "azp", "iss", "exp", "iat", "kid", "sub", "nonce"}


def test_token_response_has_the_fields_of_the_specification(site: Site, browser: Browser) -> None:
    response = site.redeem(browser.code(site))
    assert response.status_code == 200
    assert set(response.json()) == {"access_token", "id_token", "token_type", "expires_in", "refresh_token"}
    assert response.json()["token_type"] == "Bearer"
    assert response.json()["expires_in"] == 3600
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Pragma"] == "no-cache"
    assert response.headers["Content-Type"] == "application/json"


def test_refresh_token_is_issued_only_with_offline_access(site: Site, browser: Browser) -> None:
    assert "refresh_token" not in site.tokens(browser, scope="openid")


def test_id_token_claims(site: Site, browser: Browser, server: Server) -> None:
    token = site.tokens(browser, nonce="my nonce ✓")["id_token"]
    claims = site.claims(token)
    assert set(claims) == ID_CLAIMS
    assert claims["typ"] == "id_token"
    assert claims["aud"] == [server.base_url, site.client_id]
    assert claims["azp"] == site.client_id
    assert claims["iss"] == server.base_url
    assert claims["nonce"] == "my nonce ✓"
    assert isinstance(claims["sub"], str)
    assert type(claims["exp"]) is type(claims["iat"]) is int
    assert claims["exp"] - claims["iat"] == 3600
    assert abs(claims["iat"] - time.time()) < 60
    assert claims["kid"] == pyjwt.get_unverified_header(token)["kid"]


@pytest.mark.parametrize(
    ("scope", "more"),
    [
        ("openid email", {"email"}),
        ("openid profile", {"nickname"}),
        ("openid trust", set()),
        ("openid email profile trust offline_access", {"email", "nickname"}),
    ],
)
def test_scopes_determine_the_claims_of_the_id_token(site: Site, browser: Browser, scope: str, more: set[str]) -> None:
    assert set(site.claims(site.tokens(browser, scope=scope)["id_token"])) == ID_CLAIMS | more


def test_id_token_of_an_oidc_client_has_auth_time(oidc: Site, browser: Browser) -> None:
    claims = oidc.claims(oidc.tokens(browser)["id_token"])
    assert set(claims) == ID_CLAIMS | {"auth_time", "acr", "amr", "sid"}
    assert type(claims["auth_time"]) is int
    assert "nonce" not in oidc.claims(oidc.tokens(browser, nonce=None)["id_token"])


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
def test_id_token_is_signed_with_the_algorithm_of_the_client(server: Server, browser: Browser, algorithm: str) -> None:
    site = new_site(server, id_alg=algorithm)
    tokens = site.tokens(browser)
    assert pyjwt.get_unverified_header(tokens["id_token"])["alg"] == algorithm
    assert set(site.claims(tokens["id_token"])) == ID_CLAIMS
    again = site.refresh(tokens["refresh_token"]).json()
    assert pyjwt.get_unverified_header(again["id_token"])["alg"] == algorithm


def test_default_signing_algorithms(site: Site, browser: Browser) -> None:
    tokens = site.tokens(browser)
    assert pyjwt.get_unverified_header(tokens["id_token"])["alg"] == "RS256"
    assert pyjwt.get_unverified_header(tokens["refresh_token"])["alg"] == "EdDSA"  # only the service reads it


def test_refresh_token_claims(site: Site, browser: Browser, server: Server) -> None:
    claims = site.claims(site.tokens(browser)["refresh_token"])
    assert set(claims) == {"typ", "aud", "azp", "iss", "exp", "iat", "kid", "sub", "scopes", "jti"}
    assert claims["typ"] == "refresh_token"
    assert claims["aud"] == [server.base_url, site.client_id]
    assert claims["scopes"] == "openid offline_access"
    assert claims["exp"] - claims["iat"] == 2592000


def test_body_may_be_json(site: Site, browser: Browser) -> None:
    body = {"grant_type": "authorization_code", "code": browser.code(site), "redirect_uri": site.redirect_uri}
    assert site.http.post(TOKEN, json=body, headers=site.bearer()).status_code == 200


def test_bearer_may_be_upper_case(site: Site, browser: Browser) -> None:
    upper = {"Authorization": "bearer " + site.bearer()["Authorization"].split()[1].upper()}
    assert site.redeem(browser.code(site), upper).status_code == 200


def test_client_secret_may_contain_non_ascii_characters(server: Server, browser: Browser) -> None:
    site = new_site(server, client_secret="pässwörd-🎮-0123456789")
    assert site.redeem(browser.code(site)).status_code == 200


def test_replayed_code_is_refused_and_revokes_its_tokens(site: Site, browser: Browser) -> None:
    code = browser.code(site)
    data = site.redeem(code).json()
    assert site.userinfo(data["access_token"]).status_code == 200
    assert error_of(site.redeem(code)) == (400, "invalid_grant")
    assert error_of(site.userinfo(data["access_token"])) == (401, "invalid_token")
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")
    assert error_of(site.redeem(code)) == (400, "invalid_grant")


def test_replay_without_client_authentication_revokes_nothing(site: Site, browser: Browser) -> None:
    code = browser.code(site)
    data = site.redeem(code).json()
    assert error_of(site.redeem(code, site.bearer(secret="wrong"))) == (401, "invalid_client")
    assert error_of(site.redeem(code, redirect_uri="https://game.example.com/x")) == (400, "invalid_grant")
    assert site.userinfo(data["access_token"]).status_code == 200


@pytest.mark.parametrize("code", ["x", "x" * 43, "é🎮", "' OR 1=1 --", "a" * 4000])
def test_unknown_code_is_an_invalid_grant(site: Site, code: str) -> None:
    assert error_of(site.redeem(code)) == (400, "invalid_grant")


def test_code_stays_redeemable_after_failed_client_authentication(site: Site, browser: Browser, server: Server) -> None:
    code = browser.code(site)
    other = new_site(server)
    response = site.redeem(code, other.bearer())
    assert error_of(response) == (401, "invalid_client")
    assert "WWW-Authenticate" in response.headers
    for headers in ({}, {"Authorization": "Bearer é"}, {"Authorization": "Digest x"}, {"Authorization": "Bearer a b"}):
        sent = {name.encode(): value.encode() for name, value in headers.items()}
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": site.redirect_uri}
        assert error_of(site.http.post(TOKEN, data=form, headers=sent)) == (401, "invalid_client")
    assert site.redeem(code).status_code == 200


def test_twenty_failed_authentications_block_only_this_code(site: Site, browser: Browser) -> None:
    code, other = browser.code(site), browser.code(site)
    for _ in range(19):
        assert error_of(site.redeem(code, site.bearer(secret="guess"))) == (401, "invalid_client")
    another = browser.code(site)
    for _ in range(19):
        assert site.redeem(another, site.bearer(secret="guess")).status_code == 401
    assert site.redeem(another).status_code == 200
    assert site.redeem(code, site.bearer(secret="guess")).status_code == 401
    assert error_of(site.redeem(code)) == (400, "invalid_grant")
    assert site.redeem(other).status_code == 200


@pytest.mark.parametrize(
    "uri",
    [
        "https://game.example.com/cb/",
        "https://game.example.com/CB",
        "https://GAME.example.com/cb",
        "https://game.example.com/c%62",
        "https://game.example.com/cb?a=1",
        "https://game.example.com:443/cb",
        "http://game.example.com/cb",
    ],
)
def test_redirect_uri_must_equal_that_of_the_authorization_request_byte_for_byte(
    site: Site, browser: Browser, uri: str
) -> None:
    code = browser.code(site)
    assert error_of(site.redeem(code, site.bearer(uri), redirect_uri=uri)) == (400, "invalid_grant")
    assert error_of(site.redeem(code, redirect_uri=uri)) == (400, "invalid_grant")
    assert site.redeem(code).status_code == 200


def test_redirect_uri_is_compared_although_the_bearer_contains_it(server: Server, browser: Browser) -> None:
    """The bearer hashes both without a separator, so characters can be moved from the secret to the redirect_uri."""
    site = new_site(server)
    assert site.secret
    code = browser.code(site)
    longer = site.redirect_uri + site.secret[0]
    assert site.bearer(longer, site.secret[1:]) == site.bearer()
    assert error_of(site.redeem(code, redirect_uri=longer)) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": "AUTHORIZATION_CODE"}, "unsupported_grant_type"),
        ({"grant_type": ""}, "invalid_request"),
        ({"grant_type": None}, "invalid_request"),
        ({"code": None}, "invalid_request"),
        ({"code": ""}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
    ],
)
def test_wrong_or_missing_fields_are_refused(site: Site, browser: Browser, changes: dict[str, Any], error: str) -> None:
    assert error_of(site.redeem("code" if "code" in changes else browser.code(site), **changes)) == (400, error)


@pytest.mark.parametrize("value", [["authorization_code"], 1, None, True, {}, 1.5])
@pytest.mark.parametrize("name", ["grant_type", "code", "redirect_uri", "refresh_token", "client_id", "code_verifier"])
def test_fields_of_the_wrong_type_are_refused(site: Site, name: str, value: object) -> None:
    body = {"grant_type": "authorization_code", "code": "x", "redirect_uri": site.redirect_uri, name: value}
    assert error_of(site.http.post(TOKEN, json=body, headers=site.bearer())) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain", b"{}"),
        ("multipart/form-data; boundary=x", b"--x--"),
        (None, b"{}"),
        ("application/json", b"grant_type=authorization_code"),
        ("application/json; charset=utf-16", b"{}"),
        ("application/json", b"[]"),
        ("application/json", b'"x"'),
        ("application/json", b"1"),
        ("application/json", b'{"code":"a","code":"b"}'),
        ("application/x-www-form-urlencoded", b"code=a&code=b"),
        ("application/x-www-form-urlencoded", b"code=%ff"),
        ("application/json", b'{"code":"\\u0000"}'),
    ],
)
def test_malformed_bodies_are_refused(site: Site, content_type: str | None, body: bytes) -> None:
    headers = site.bearer() | ({"Content-Type": content_type} if content_type else {})
    response = site.http.post(TOKEN, content=body, headers=headers)
    assert response.status_code in (400, 415)
    assert error_of(response)[1] == "invalid_request"


def test_strict_client_can_authenticate_only_with_the_bearer(site: Site, browser: Browser) -> None:
    code = browser.code(site)
    bearer = site.bearer()["Authorization"].split()[1]
    for headers, changes in (
        ({}, {"client_id": site.client_id, "client_secret": site.secret}),
        (site.basic(), {}),
        ({}, {"bearer": bearer}),
        ({}, {"access_token": bearer}),
        ({}, {"client_id": site.client_id}),
    ):
        assert error_of(site.redeem(code, headers, **changes)) == (401, "invalid_client")
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": site.redirect_uri}
    assert error_of(site.http.post(f"{TOKEN}?access_token={bearer}", data=form)) == (401, "invalid_client")
    assert site.redeem(code).status_code == 200


def test_two_authentication_methods_at_once_are_refused(oidc: Site, browser: Browser) -> None:
    response = oidc.redeem(browser.code(oidc), oidc.basic(), client_secret=oidc.secret)
    assert error_of(response) == (400, "invalid_request")


@pytest.mark.parametrize("method", ["basic", "post", "bearer"])
def test_oidc_client_may_authenticate_with_every_standard_method(oidc: Site, browser: Browser, method: str) -> None:
    def redeem(secret: str | None) -> httpx.Response:
        code = browser.code(oidc)
        if method == "basic":
            return oidc.redeem(code, oidc.basic(secret))
        if method == "bearer":
            return oidc.redeem(code, oidc.bearer(secret=secret))
        return oidc.redeem(code, {}, client_id=oidc.client_id, client_secret=secret or oidc.secret)

    assert redeem(None).status_code == 200
    wrong = redeem("wrong")
    assert error_of(wrong) == (401, "invalid_client")
    assert wrong.headers["WWW-Authenticate"].startswith("Basic" if method == "basic" else "Bearer")


def test_failed_client_authentication_is_invalid_client_even_for_an_unknown_code(oidc: Site) -> None:
    assert error_of(oidc.redeem("x" * 43, oidc.basic("wrong"))) == (401, "invalid_client")
    assert error_of(oidc.redeem("x" * 43, oidc.basic())) == (400, "invalid_grant")
    unknown = Site(oidc.server, "unknown", "some-secret-0123456", profile="oidc")
    assert error_of(unknown.redeem("x" * 43, unknown.basic())) == (401, "invalid_client")


@pytest.mark.parametrize("header", ["Basic !!!", "Basic eA==", "Basic Og==", "Basic /w==", "Basic", "Basic AGE6Yg=="])
def test_malformed_basic_header_is_refused(oidc: Site, browser: Browser, header: str) -> None:
    assert error_of(oidc.redeem(browser.code(oidc), {"Authorization": header})) == (401, "invalid_client")


def test_code_of_another_client_is_refused(server: Server, oidc: Site, browser: Browser) -> None:
    other = new_site(server, profile="oidc")
    code = browser.code(oidc)
    assert error_of(other.redeem(code, other.basic())) == (400, "invalid_grant")
    assert error_of(other.redeem(code)) == (401, "invalid_client")
    assert oidc.redeem(code).status_code == 200


@pytest.mark.parametrize("profile", ["strict", "oidc"])
def test_pkce_is_checked_for_every_client(server: Server, browser: Browser, profile: str) -> None:
    site = new_site(server, profile=profile)
    verifier, challenge = pkce()
    code = browser.code(site, code_challenge=challenge, code_challenge_method="S256")
    for wrong in (None, pkce()[0], challenge, "short", verifier + "=", verifier.swapcase()):
        assert error_of(site.redeem(code, code_verifier=wrong)) == (400, "invalid_grant")
    assert site.redeem(code, code_verifier=verifier).status_code == 200


def test_verifier_without_challenge_is_refused(site: Site, browser: Browser) -> None:
    code = browser.code(site)
    assert error_of(site.redeem(code, code_verifier=pkce()[0])) == (400, "invalid_grant")


def test_public_client_redeems_with_pkce_and_without_secret(server: Server, browser: Browser) -> None:
    site = new_site(server, public=True, profile="oidc")
    verifier, challenge = pkce()
    code = browser.code(site, code_challenge=challenge, code_challenge_method="S256")
    named = {"client_id": site.client_id}
    assert error_of(site.redeem(code, {}, code_verifier=verifier)) == (401, "invalid_client")
    assert error_of(site.redeem(code, site.bearer(), code_verifier=verifier)) == (401, "invalid_client")
    assert error_of(site.redeem(code, {}, client_secret="x", code_verifier=verifier, **named)) == (
        401,
        "invalid_client",
    )
    assert error_of(site.redeem(code, {}, code_verifier=pkce()[0], **named)) == (400, "invalid_grant")
    response = site.redeem(code, {}, code_verifier=verifier, **named)
    assert response.status_code == 200
    token = response.json()["refresh_token"]
    assert site.refresh(token, {}, client_id="other").status_code == 401
    assert site.refresh(token, {}, **named).status_code == 200


def test_strict_client_without_secret_cannot_authenticate(server: Server, browser: Browser) -> None:
    site = new_site(server, public=True, profile="strict")
    assert error_of(site.redeem(browser.code(site))) == (401, "invalid_client")


def test_methods_other_than_post_are_not_allowed(site: Site) -> None:
    for method in ("GET", "PUT", "DELETE"):
        response = site.http.request(method, TOKEN)
        assert response.status_code == 405
        assert "POST" in response.headers["Allow"]


@pytest.mark.parametrize("origin", ["https://evil.com", "null"])
def test_responses_have_no_cors_headers(site: Site, origin: str) -> None:
    for method, path in (("POST", TOKEN), ("GET", "/proxy/oauth/userinfo")):
        response = site.http.request(method, path, headers={"Origin": origin})
        assert "Access-Control-Allow-Origin" not in response.headers


def test_end_of_sessions_between_authorization_and_redemption_revokes_the_code(server: Server, site: Site) -> None:
    browser = new_browser(server).sign_in()
    code = browser.code(site)
    server.sso("user", "end-sessions", browser.login)
    assert error_of(site.redeem(code)) == (400, "invalid_grant")


def test_log_contains_no_codes_tokens_or_secrets(server: Server, browser: Browser) -> None:
    site = new_site(server)
    code = browser.code(site, state="a-state-to-look-for")
    data = site.redeem(code).json()
    site.redeem(code, site.bearer(secret="wrong"))
    site.redeem(code)
    site.refresh(data["refresh_token"])
    log = server.log()
    assert "oauth.code_replayed" in log
    bearer = site.bearer()["Authorization"].split()[1]
    secrets = [code, bearer, site.secret or "", data["access_token"], data["id_token"], data["refresh_token"]]
    for secret in [*secrets, "a-state-to-look-for", data["refresh_token"].split(".")[2]]:
        assert secret not in log
