"""Tokens that are bound to a key of the client (RFC 9449)."""

import base64
import json
import time
from typing import Any

import httpx
import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sso.core.keys import public_jwk
from tests.kit.dpop import DpopKey, ath, is_stored
from tests.kit.oauth import (
    AUTHORIZE,
    INTROSPECT,
    PAR,
    REVOKE,
    TOKEN,
    USERINFO,
    Browser,
    Site,
    error_of,
    new_site,
    pkce,
    query_of,
)
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

KEYS = {algorithm: DpopKey(algorithm) for algorithm in ("RS256", "PS256", "ES256", "EdDSA")}
ALGS = 'algs="RS256 PS256 ES256 EdDSA"'


@pytest.fixture(scope="module")
def public(server: Server) -> Site:
    return new_site(server, public=True, profile="oidc")


def redeem(site: Site, browser: Browser, key: DpopKey | None, **changes: Any) -> httpx.Response:
    """Authorizes and redeems the code, as a confidential or as a public client."""
    headers = key.headers(site) if key else {}
    if site.secret:
        return site.redeem(browser.code(site, **changes), headers=site.basic() | headers)
    verifier, challenge = pkce()
    code = browser.code(site, code_challenge=challenge, code_challenge_method="S256", **changes)
    return site.redeem(code, headers=headers, client_id=site.client_id, code_verifier=verifier)


def refresh(site: Site, token: str, key: DpopKey | None) -> httpx.Response:
    headers = (site.basic() if site.secret else {}) | (key.headers(site) if key else {})
    return site.refresh(token, headers=headers, **({} if site.secret else {"client_id": site.client_id}))


def userinfo(site: Site, access_token: str, key: DpopKey, **changes: Any) -> httpx.Response:
    return site.http.get(USERINFO, headers=key.at_userinfo(site, access_token, **changes))


@pytest.mark.parametrize(("kind", "algorithm"), [*(("oidc", algorithm) for algorithm in KEYS), ("public", "ES256")])
def test_tokens_are_bound_to_the_key_of_the_proof(
    request: pytest.FixtureRequest, browser: Browser, kind: str, algorithm: str
) -> None:
    site, key = request.getfixturevalue(kind), KEYS[algorithm]
    tokens = redeem(site, browser, key).json()
    assert tokens["token_type"] == "DPoP"
    assert userinfo(site, tokens["access_token"], key).status_code == 200
    refreshed = refresh(site, tokens["refresh_token"], key).json()
    assert refreshed["token_type"] == "DPoP"
    assert userinfo(site, refreshed["access_token"], key).status_code == 200
    post = key.at_userinfo(site, refreshed["access_token"], htm="POST")
    assert site.http.post(USERINFO, headers=post).status_code == 200


def test_bound_token_is_refused_as_bearer(oidc: Site, browser: Browser) -> None:
    token = redeem(oidc, browser, KEYS["ES256"]).json()["access_token"]
    answer = oidc.userinfo(token)
    assert error_of(answer) == (401, "invalid_token")
    assert answer.headers["WWW-Authenticate"] == f'Bearer realm="sso", error="invalid_token", DPoP {ALGS}'
    exchange = oidc.http.post("/proxy/oauth/exchangeToken", headers={"Authorization": f"Bearer {token}"})
    assert error_of(exchange) == (401, "invalid_token")


def test_token_without_a_key_is_refused_with_the_scheme_dpop(oidc: Site, browser: Browser) -> None:
    token = redeem(oidc, browser, None).json()["access_token"]
    answer = userinfo(oidc, token, KEYS["ES256"])
    assert error_of(answer) == (401, "invalid_token")
    assert answer.headers["WWW-Authenticate"] == f'DPoP realm="sso", error="invalid_token", {ALGS}'
    assert oidc.userinfo(token).status_code == 200


def with_base(oidc: Site, changes: dict[str, Any]) -> dict[str, Any]:
    """Returns the changes with the address of the server in htu."""
    htu = changes.get("htu")
    return changes | {"htu": htu.format(base=oidc.server.base_url)} if isinstance(htu, str) else changes


def test_userinfo_needs_a_proof_for_this_token(oidc: Site, browser: Browser) -> None:
    key = KEYS["ES256"]
    token = redeem(oidc, browser, key).json()["access_token"]
    invalid: tuple[dict[str, Any], ...] = (
        {"ath": None},
        {"ath": ath("other")},
        {"ath": 5},
        {"ath": "\ud800"},
        {"htm": "POST"},
        {"htu": "{base}/proxy/oauth/token"},
    )
    for changes in invalid:
        answer = userinfo(oidc, token, key, **with_base(oidc, changes))
        assert error_of(answer) == (401, "invalid_dpop_proof"), changes
        assert answer.headers["WWW-Authenticate"] == f'DPoP realm="sso", error="invalid_dpop_proof", {ALGS}'
    without = oidc.http.get(USERINFO, headers={"Authorization": f"DPoP {token}"})
    assert error_of(without) == (401, "invalid_dpop_proof")
    assert error_of(userinfo(oidc, token, KEYS["EdDSA"])) == (401, "invalid_dpop_proof")
    assert userinfo(oidc, token, key).status_code == 200


INVALID_PROOFS: tuple[dict[str, Any], ...] = (
    {"htm": "GET"},
    {"htm": "post"},
    {"htm": None},
    {"htu": "{base}/proxy/oauth/userinfo"},
    {"htu": "https://evil.example/proxy/oauth/token"},
    {"htu": "{base}/proxy/oauth/token/"},
    {"htu": "{base}/proxy/oauth/../oauth/token"},
    {"htu": "/proxy/oauth/token"},
    {"htu": "http://[/proxy/oauth/token"},
    {"htu": "{base}@evil.example/proxy/oauth/token"},
    {"htu": None},
    {"htu": 5},
    {"htu": "x" * 3000},
    {"iat": int(time.time()) - 3600},
    {"iat": int(time.time()) + 3600},
    {"iat": None},
    {"iat": "now"},
    {"iat": True},
    {"exp": 5},
    {"exp": "later"},
    {"nbf": int(time.time()) + 3600},
    {"jti": None},
    {"jti": ""},
    {"jti": 5},
    {"jti": "\ud800"},
    {"jti": "x" * 300},
    {"header": {"typ": "JWT"}},
    {"header": {"typ": "at+jwt"}},
    {"header": {"jwk": None}},
    {"header": {"jwk": "x"}},
    {"header": {"jwk": {}}},
    {"header": {"jwk": {"kty": "oct", "k": "AAAA"}}},
    {"header": {"jwk": KEYS["EdDSA"].jwk}},
    {"header": {"jwk": KEYS["ES256"].jwk | {"d": "AAAA"}}},
    {"header": {"jwk": KEYS["ES256"].jwk | {"x": KEYS["ES256"].jwk["y"]}}},
    {"header": {"jwk": KEYS["ES256"].jwk | {"crv": "P-384"}}},
    {"header": {"alg": "HS256"}, "key": "0123456789abcdef0123456789abcdef"},
    {"header": {"alg": "none"}, "key": ""},
    {"header": {"crit": ["x"]}},
    {"header": {"x": "x" * 2000}},
    {"padding": "x" * 5000},
    {"key": ec.generate_private_key(ec.SECP256R1())},
)


def test_invalid_proofs_are_refused_and_the_code_still_works(oidc: Site, browser: Browser) -> None:
    key, code = KEYS["ES256"], browser.code(oidc)
    for changes in INVALID_PROOFS:
        answer = oidc.redeem(code, headers=oidc.basic() | key.headers(oidc, **with_base(oidc, changes)))
        assert error_of(answer) == (400, "invalid_dpop_proof"), changes
    assert oidc.redeem(code, headers=oidc.basic() | key.headers(oidc)).status_code == 200


@pytest.mark.parametrize("text", ["x", "a.b.c", "e30.e30.e30", "", "é", "a" * 10_000, "[]"])
def test_malformed_proofs_are_refused(oidc: Site, text: str) -> None:
    headers = oidc.basic() | {"DPoP": text.encode()}
    assert error_of(oidc.redeem("x", headers=headers)) == (400, "invalid_dpop_proof")  # type: ignore[arg-type]


def test_two_proofs_in_one_request_are_refused(oidc: Site, browser: Browser) -> None:
    key = KEYS["ES256"]
    form = {"grant_type": "authorization_code", "code": browser.code(oidc), "redirect_uri": oidc.redirect_uri}
    headers = [*oidc.basic().items(), ("DPoP", key.proof(oidc)), ("DPoP", key.proof(oidc))]
    assert error_of(oidc.http.post(TOKEN, data=form, headers=headers)) == (400, "invalid_dpop_proof")


@pytest.mark.parametrize(("bits", "exponent"), [(1024, 65537), (8192, 65537), (2048, 2**31 + 11)])
def test_weak_and_costly_keys_are_refused(oidc: Site, bits: int, exponent: int) -> None:
    """A key is read before the client is authenticated, so its cost is bounded."""
    number = (1 << bits - 1) + 1
    raw = base64.urlsafe_b64encode(number.to_bytes(bits // 8, "big")).decode().rstrip("=")
    encoded = base64.urlsafe_b64encode(exponent.to_bytes(4, "big")).decode().rstrip("=")
    header = {"alg": "RS256", "jwk": {"kty": "RSA", "n": raw, "e": encoded}}
    proof = KEYS["RS256"].proof(oidc, header=header)
    answer = oidc.redeem("x", headers=oidc.basic() | {"DPoP": proof})
    assert error_of(answer) == (400, "invalid_dpop_proof")


def test_rsa_key_of_4096_bits_is_accepted(oidc: Site, browser: Browser) -> None:
    key = DpopKey("RS256")
    key.key = rsa_key(0, 4096)
    assert redeem(oidc, browser, key).status_code == 200


def test_spellings_of_the_address_are_equal(oidc: Site, browser: Browser) -> None:
    host = oidc.server.base_url.removeprefix("http://")
    for address in (f"HTTP://{host.upper()}{TOKEN}", f"http://{host}{TOKEN}?a=b#c"):
        headers = oidc.basic() | KEYS["ES256"].headers(oidc, htu=address)
        assert oidc.redeem(browser.code(oidc), headers=headers).status_code == 200


def test_proof_works_once_at_all_endpoints(oidc: Site, browser: Browser) -> None:
    key = KEYS["ES256"]
    proof = {"DPoP": key.proof(oidc)}
    tokens = oidc.redeem(browser.code(oidc), headers=oidc.basic() | proof).json()
    again = oidc.redeem(browser.code(oidc), headers=oidc.basic() | proof)
    assert error_of(again) == (400, "invalid_dpop_proof")
    assert error_of(oidc.refresh(tokens["refresh_token"], headers=oidc.basic() | proof)) == (400, "invalid_dpop_proof")
    assert refresh(oidc, tokens["refresh_token"], key).status_code == 200  # the token was not used up
    headers = key.at_userinfo(oidc, tokens["access_token"])
    assert oidc.http.get(USERINFO, headers=headers).status_code == 200
    assert error_of(oidc.http.get(USERINFO, headers=headers)) == (401, "invalid_dpop_proof")


def test_proof_of_a_refused_request_is_not_stored(server: Server, oidc: Site, public: Site, browser: Browser) -> None:
    """Otherwise strangers could fill the table."""
    key = KEYS["ES256"]
    refresh_token = redeem(oidc, browser, key).json()["refresh_token"]
    ended = redeem(public, browser, key).json()["refresh_token"]
    form = {"token": ended, "client_id": public.client_id}
    assert public.http.post(REVOKE, data=form).status_code == 200
    proofs = [key.headers(oidc) for _ in range(3)]
    assert oidc.refresh(refresh_token, headers=oidc.basic("wrong") | proofs[0]).status_code == 401
    assert public.refresh(ended, headers=proofs[1], client_id=public.client_id).status_code == 400
    assert oidc.redeem("no-such-code", headers=oidc.basic() | proofs[2]).status_code == 400
    pushed = key.headers(public, PAR)
    fields = {"client_id": public.client_id, "redirect_uri": public.redirect_uri, "response_type": "wrong"}
    assert public.http.post(PAR, data=fields, headers=pushed).status_code == 400
    assert [is_stored(server, key, headers) for headers in (*proofs, pushed)] == [False] * 4
    assert oidc.refresh(refresh_token, headers=oidc.basic() | proofs[0]).status_code == 200
    assert is_stored(server, key, proofs[0])


def test_refresh_token_of_a_public_client_is_bound(public: Site, browser: Browser) -> None:
    key, other = KEYS["ES256"], KEYS["EdDSA"]
    token = redeem(public, browser, key).json()["refresh_token"]
    assert error_of(refresh(public, token, None)) == (400, "invalid_dpop_proof")
    assert error_of(refresh(public, token, other)) == (400, "invalid_grant")
    assert refresh(public, token, key).status_code == 200  # neither attempt revoked it


def test_confidential_client_may_change_its_key(oidc: Site, browser: Browser) -> None:
    first = redeem(oidc, browser, KEYS["ES256"]).json()
    second = refresh(oidc, first["refresh_token"], KEYS["EdDSA"]).json()
    assert userinfo(oidc, second["access_token"], KEYS["EdDSA"]).status_code == 200
    assert userinfo(oidc, second["access_token"], KEYS["ES256"]).status_code == 401
    third = refresh(oidc, second["refresh_token"], None).json()
    assert third["token_type"] == "Bearer"
    assert oidc.userinfo(third["access_token"]).status_code == 200


def test_repeated_refresh_gets_the_same_bound_tokens(public: Site, browser: Browser) -> None:
    key = KEYS["ES256"]
    token = redeem(public, browser, key).json()["refresh_token"]
    more = {"client_id": public.client_id}
    answers = [
        public.refresh(token, headers=key.headers(public) | {"Idempotency-Key": "k"}, **more).json() for _ in range(2)
    ]
    assert answers[0]["access_token"] == answers[1]["access_token"]
    assert answers[0]["token_type"] == answers[1]["token_type"] == "DPoP"
    assert userinfo(public, answers[0]["access_token"], key).status_code == 200


@pytest.mark.parametrize("pushed", [False, True])
def test_code_is_bound_by_dpop_jkt(oidc: Site, browser: Browser, pushed: bool) -> None:
    key, other = KEYS["ES256"], KEYS["EdDSA"]

    def code() -> str:
        if not pushed:
            return browser.code(oidc, dpop_jkt=key.jkt)
        # A proof at the pushed request is as good as the parameter.
        answer = oidc.http.post(PAR, data=oidc.query(), headers=oidc.basic() | key.headers(oidc, PAR))
        parameters = {"client_id": oidc.client_id, "request_uri": answer.json()["request_uri"]}
        return query_of(browser.http.get(AUTHORIZE, params=parameters))["code"]

    own = code()
    assert error_of(oidc.redeem(own, headers=oidc.basic())) == (400, "invalid_dpop_proof")
    assert error_of(oidc.redeem(own, headers=oidc.basic() | other.headers(oidc))) == (400, "invalid_grant")
    assert oidc.redeem(own, headers=oidc.basic() | key.headers(oidc)).status_code == 200


def test_pushed_request_with_a_proof(oidc: Site) -> None:
    key, headers = KEYS["ES256"], oidc.basic() | KEYS["ES256"].headers(oidc, PAR)
    assert oidc.http.post(PAR, data=oidc.query(dpop_jkt=key.jkt), headers=headers).status_code == 201
    assert error_of(oidc.http.post(PAR, data=oidc.query(), headers=headers)) == (400, "invalid_dpop_proof")  # used
    for changes, fields in (({}, {"dpop_jkt": KEYS["EdDSA"].jkt}), ({"htu": oidc.server.base_url + TOKEN}, {})):
        headers = oidc.basic() | key.headers(oidc, PAR, **changes)
        assert error_of(oidc.http.post(PAR, data=oidc.query(**fields), headers=headers)) == (400, "invalid_dpop_proof")


def test_dpop_jkt_survives_the_sign_in_and_must_be_a_thumbprint(server: Server, oidc: Site, browser: Browser) -> None:
    assert query_of(browser.authorize(oidc, dpop_jkt="x"))["error"] == "invalid_request"
    site = new_site(server, profile="oidc", consent=True)
    page = browser.authorize(site, dpop_jkt=KEYS["ES256"].jkt)
    code = query_of(browser.submit(page, {"decision": "allow"}, form=0))["code"]
    assert error_of(site.redeem(code, headers=site.basic())) == (400, "invalid_dpop_proof")
    assert site.redeem(code, headers=site.basic() | KEYS["ES256"].headers(site)).status_code == 200


def test_client_whose_tokens_must_be_bound(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc", dpop_bound_access_tokens=True)
    code = browser.code(site)
    for _ in range(2):  # the second time, the client is cached
        assert error_of(site.redeem(code, headers=site.basic(), client_id=site.client_id)) == (
            400,
            "invalid_dpop_proof",
        )
    tokens = site.redeem(code, headers=site.basic() | KEYS["ES256"].headers(site)).json()
    assert error_of(refresh(site, tokens["refresh_token"], None)) == (400, "invalid_dpop_proof")
    assert refresh(site, tokens["refresh_token"], KEYS["ES256"]).status_code == 200
    assert json.loads(server.sso("client", "show", site.client_id).stdout)["dpop_bound_access_tokens"] is True
    server.sso("client", "set", site.client_id, "--no-dpop-bound-access-tokens")
    assert site.redeem(browser.code(site), headers=site.basic()).status_code == 200
    server.sso("client", "set", site.client_id, "--dpop-bound-access-tokens")  # the cached client does not know it
    assert error_of(site.redeem(browser.code(site), headers=site.basic())) == (400, "invalid_dpop_proof")


def test_jwt_access_token_and_introspection_name_the_key(server: Server, browser: Browser) -> None:
    key = KEYS["ES256"]
    site = new_site(server, profile="oidc", access_token_format="jwt", application_id=91)
    api = new_site(server, profile="oidc", resource_server=True, application_id=91)
    token = redeem(site, browser, key).json()["access_token"]
    assert site.claims(token)["cnf"] == {"jkt": key.jkt}
    assert userinfo(site, token, key).status_code == 200
    claims = api.http.post(INTROSPECT, data={"token": token}, headers=api.basic()).json()
    assert (claims["active"], claims["token_type"], claims["cnf"]) == (True, "DPoP", {"jkt": key.jkt})
    plain = redeem(site, browser, None).json()["access_token"]
    assert "cnf" not in site.claims(plain)
    claims = api.http.post(INTROSPECT, data={"token": plain}, headers=api.basic()).json()
    assert (claims["token_type"], "cnf" in claims) == ("Bearer", False)


def test_thumbprint_is_that_of_rfc_7638() -> None:
    """The example of RFC 7638 section 3.1; leading zeros of a number do not change it."""
    from sso.core.jwk import load_jwk
    from sso.oauth.tokens.dpop import jwk_thumbprint

    n = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
        "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA"
        "ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-"
        "kEgU8awapJzKnqDKgw"
    )
    key = load_jwk({"kty": "RSA", "n": n, "e": "AQAB"})
    assert jwk_thumbprint(key) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    assert jwk_thumbprint(load_jwk({"kty": "RSA", "n": n, "e": "AAEAAQ"})) == jwk_thumbprint(key)


def test_private_key_in_a_header_is_refused_and_not_logged(server: Server, oidc: Site) -> None:
    key = KEYS["EdDSA"]
    raw = key.key.private_bytes(
        serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
    )
    secret = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    headers = oidc.basic() | key.headers(oidc, header={"jwk": key.jwk | {"d": secret}})
    answer = oidc.redeem("x", headers=headers)
    assert error_of(answer) == (400, "invalid_dpop_proof")
    assert secret not in answer.text
    assert secret not in server.log()


def test_preflight_allows_the_header_and_discovery_lists_the_algorithms(public: Site) -> None:
    preflight = {
        "Origin": "https://game.example.com",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "dpop",
    }
    answer = public.http.options(TOKEN, headers=preflight)
    assert "DPoP" in answer.headers["Access-Control-Allow-Headers"]
    document = public.http.get("/.well-known/openid-configuration").json()
    assert document["dpop_signing_alg_values_supported"] == ["RS256", "PS256", "ES256", "EdDSA"]


def test_proof_with_a_kid_and_key_attributes_is_accepted(oidc: Site, browser: Browser) -> None:
    key = KEYS["ES256"]
    jwk = public_jwk(key.key.public_key(), "my key")
    headers = oidc.basic() | key.headers(oidc, header={"jwk": jwk, "kid": "my key"})
    token = oidc.redeem(browser.code(oidc), headers=headers).json()["access_token"]
    assert userinfo(oidc, token, key).status_code == 200
    assert pyjwt.get_unverified_header(headers["DPoP"])["kid"] == "my key"
