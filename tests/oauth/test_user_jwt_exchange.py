"""POST /proxy/oauth/exchange and exchangeToken; every endpoint accepts only its own type of token."""

import base64
import time
from collections.abc import Iterator
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, Site, error_of, new_browser, new_site
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

EXCHANGE, EXCHANGE_TOKEN = "/proxy/oauth/exchange", "/proxy/oauth/exchangeToken"
LOGIN = "/proxy/api/login"


def bearer(token: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **headers}


@pytest.fixture(scope="module")
def user_jwt(site: Site, browser: Browser) -> str:
    fields = {"login": browser.login, "password": PASSWORD, "factor": "device-1"}
    return str(site.http.post(LOGIN, json=fields).json()["jwt"])


def test_user_jwt_is_exchanged_for_an_id_token(site: Site, server: Server, user_jwt: str) -> None:
    response = site.http.post(EXCHANGE, headers=bearer(user_jwt))
    assert response.status_code == 200
    assert set(response.json()) == {"id_token", "expires_in"}
    claims, source = site.claims(response.json()["id_token"]), site.claims(user_jwt)
    assert set(claims) == {"typ", "iss", "aud", "azp", "sub", "iat", "exp", "kid"}
    assert claims["typ"] == "id_token"
    assert claims["aud"] == [server.base_url]
    assert claims["azp"] == server.base_url
    assert claims["sub"] == source["sub"]
    assert claims["exp"] <= source["exp"]
    assert response.json()["expires_in"] == claims["exp"] - claims["iat"]
    assert response.headers["Cache-Control"] == "no-store"


def test_factor_header_is_checked_if_present(site: Site, user_jwt: str) -> None:
    assert site.http.post(EXCHANGE, headers=bearer(user_jwt, Factor="device-1")).status_code == 200
    assert error_of(site.http.post(EXCHANGE, headers=bearer(user_jwt, Factor="other"))) == (401, "invalid_token")


def test_access_token_is_exchanged_for_a_user_jwt(site: Site, browser: Browser) -> None:
    data = site.tokens(browser)
    response = site.http.post(EXCHANGE_TOKEN, headers=bearer(data["access_token"]))
    assert set(response.json()) == {"token"}
    claims = site.claims(response.json()["token"])
    assert set(claims) == {"typ", "iss", "sub", "uid", "iat", "exp", "kid", "jti", "auth", "auth_time"}
    assert claims["typ"] == "exchanged_token"
    assert claims["auth"] == "openid"
    assert claims["sub"] == claims["uid"] == site.claims(data["id_token"])["sub"]
    assert claims["exp"] <= time.time() + data["expires_in"]


def test_exchanged_token_has_the_nickname_with_scope_profile_only(site: Site, browser: Browser) -> None:
    for scope, shown in (("openid", False), ("openid email", False), ("openid profile", True)):
        access_token = site.tokens(browser, scope=scope)["access_token"]
        claims = site.claims(site.http.post(EXCHANGE_TOKEN, headers=bearer(access_token)).json()["token"])
        assert claims.get("nick") == ("Ann" if shown else None)


def test_exchanged_token_keeps_the_authentication_time(server: Server) -> None:
    site, browser = new_site(server, profile="oidc"), new_browser(server).sign_in()
    data = site.tokens(browser)
    claims = site.claims(site.http.post(EXCHANGE_TOKEN, headers=bearer(data["access_token"])).json()["token"])
    assert claims["auth_time"] == site.claims(data["id_token"])["auth_time"]


@pytest.fixture
def first_party(server: Server) -> Site:
    return new_site(server, first_party=True, profile="oidc")


@pytest.mark.parametrize(
    "ending", ["revoked access token", "first_party withdrawn", "client disabled", "grant revoked"]
)
def test_exchanged_token_becomes_invalid_with_its_source(
    server: Server, browser: Browser, first_party: Site, ending: str
) -> None:
    site = first_party
    data, other = site.tokens(browser), site.tokens(browser)
    tokens = [
        site.http.post(EXCHANGE_TOKEN, headers=bearer(item["access_token"], Factor="device-1")).json()["token"]
        for item in (data, other)
    ]

    def statuses(token: str) -> tuple[int, int]:
        headers = bearer(token, Factor="device-1")
        info = site.http.post("/api/permissions/user/info", json={}, headers=headers)
        return info.status_code, site.http.post(EXCHANGE, headers=headers).status_code

    assert [statuses(token) for token in tokens] == [(200, 200)] * 2
    match ending:
        case "revoked access token":
            revoked = {"client_id": site.client_id, "client_secret": site.secret, "token": data["access_token"]}
            assert site.http.post("/proxy/oauth/token/revoke", data=revoked).status_code == 200
        case "grant revoked":
            assert site.revoke(data["refresh_token"]).status_code == 200
        case "first_party withdrawn":
            server.apply({"clients": [{"client_id": site.client_id, "first_party": False}]})
        case _:
            server.sso("client", "disable", site.client_id)
    assert statuses(tokens[0]) == (401, 401)
    survives = ending in ("revoked access token", "grant revoked")
    assert statuses(tokens[1]) == ((200, 200) if survives else (401, 401))


def test_only_a_first_party_client_may_bind_an_exchanged_token_to_a_device(
    server: Server, site: Site, browser: Browser
) -> None:
    own = new_site(server, first_party=True)
    for client, bound in ((own, True), (site, False)):
        headers = bearer(client.tokens(browser)["access_token"], Factor="device-1")
        token = client.http.post(EXCHANGE_TOKEN, headers=headers).json()["token"]
        assert ("fac" in client.claims(token)) is bound
        assert client.http.post(EXCHANGE, headers=bearer(token)).status_code == 200
        with_factor = client.http.post(EXCHANGE, headers=bearer(token, Factor="device-1"))
        assert with_factor.status_code == (200 if bound else 401)


def test_revoked_tokens_cannot_be_exchanged(server: Server, site: Site) -> None:
    browser = new_browser(server).sign_in()
    fields = {"login": browser.login, "password": PASSWORD, "factor": "d"}
    jwt = site.http.post(LOGIN, json=fields).json()["jwt"]
    data, valid = site.tokens(browser), site.tokens(browser)
    exchanged = site.http.post(EXCHANGE_TOKEN, headers=bearer(valid["access_token"])).json()["token"]
    site.revoke(data["refresh_token"])
    assert error_of(site.http.post(EXCHANGE_TOKEN, headers=bearer(data["access_token"]))) == (401, "invalid_token")
    server.sso("user", "disable", browser.login)
    assert error_of(site.http.post(EXCHANGE_TOKEN, headers=bearer(valid["access_token"]))) == (401, "invalid_token")
    for token in (jwt, exchanged):
        assert error_of(site.http.post(EXCHANGE, headers=bearer(token))) == (401, "invalid_token")


def test_every_endpoint_refuses_other_token_types(site: Site, browser: Browser, user_jwt: str) -> None:
    data = site.tokens(browser)
    tokens = {
        "user": user_jwt,
        "exchanged": site.http.post(EXCHANGE_TOKEN, headers=bearer(data["access_token"])).json()["token"],
        "access": data["access_token"],
        "id": data["id_token"],
        "refresh": data["refresh_token"],
        "exchanged id": site.http.post(EXCHANGE, headers=bearer(user_jwt)).json()["id_token"],
    }
    accepted = {EXCHANGE: {"user", "exchanged"}, EXCHANGE_TOKEN: {"access"}, "/proxy/oauth/userinfo": {"access"}}
    for path, kinds in accepted.items():
        for kind, token in tokens.items():
            response = site.http.post(path, headers=bearer(token))
            if kind in kinds:
                assert response.status_code == 200, (path, kind)
            else:
                assert error_of(response) == (401, "invalid_token"), (path, kind)
    for kind, token in tokens.items():
        if kind != "refresh":
            assert site.refresh(token).status_code == 400, kind
            assert site.revoke(token).status_code == 400, kind
        if kind != "id":
            assert (
                site.http.get("/proxy/oauth/authorize", params=site.query(id_token_hint=token))
                .headers["Location"]
                .startswith(f"{site.redirect_uri}?error=invalid_request")
            ), kind


def forged(site: Site, token: str) -> Iterator[tuple[str, str]]:
    """Yields forgeries of the token, each with a description, by all known attacks on JWT libraries."""
    header, claims = pyjwt.get_unverified_header(token), pyjwt.decode(token, options={"verify_signature": False})
    key = rsa_key()
    published = pyjwt.PyJWKSet.from_dict(site.http.get("/proxy/oauth/keys").json())[header["kid"]]
    public: Any = published.key
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    head, body, signature = token.split(".")

    def part(value: dict[str, Any]) -> str:
        import json

        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    for alg in ("none", "None", "NONE", "nOnE", ""):
        yield f"alg {alg!r}", f"{part({**header, 'alg': alg})}.{body}."
        yield f"alg {alg!r} signed", f"{part({**header, 'alg': alg})}.{body}.{signature}"
    yield "no alg", f"{part({'kid': header['kid']})}.{body}.{signature}"
    yield "no signature", f"{head}.{body}."
    import hashlib
    import hmac

    for name, secret in (("pem", pem), ("stripped", pem.strip()), ("der", der), ("empty", b"")):
        for alg, kind in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
            text = f"{part({**header, 'alg': alg})}.{body}"
            signature = base64.urlsafe_b64encode(hmac.new(secret, text.encode(), kind).digest()).decode().rstrip("=")
            yield f"{alg} {name}", f"{text}.{signature}"
    jwk = pyjwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    for more in ({"jwk": jwk}, {"jku": "http://127.0.0.1:1/"}, {"x5u": "http://127.0.0.1:1/"}, {"x5c": ["AA=="]}):
        yield str(list(more)), pyjwt.encode(claims, key, algorithm="RS256", headers={**header, "alg": "RS256", **more})
    for kid in ("x", "../../../../dev/null", "a' OR '1'='1", "x" * 10_000):
        yield f"kid {kid[:9]}", pyjwt.encode(claims, key, algorithm="RS256", headers={"kid": kid})
    yield "no kid", pyjwt.encode(claims, key, algorithm="RS256")
    yield "long", token + "A" * 20_000
    yield "segments", ".".join(["AA"] * 500)
    yield "padding", token + "="


def test_forged_tokens_are_refused_everywhere(site: Site, browser: Browser, user_jwt: str) -> None:
    refresh = site.tokens(browser)["refresh_token"]
    for description, token in forged(site, user_jwt):
        assert site.http.post(EXCHANGE, headers=bearer(token)).status_code in (400, 401, 431), description
    for description, token in forged(site, refresh):
        response = site.refresh(token)
        assert response.status_code == 400, description
        assert response.json()["error"] == "invalid_request", description
    assert site.refresh(refresh).status_code == 200


def test_exchanged_token_with_non_ascii_factor_becomes_invalid_with_its_grant(server: Server, browser: Browser) -> None:
    site = new_site(server, first_party=True)
    data = site.tokens(browser)
    factor = "gerät".encode()  # clients send a header as UTF-8
    sent = {b"Authorization": f"Bearer {data['access_token']}".encode(), b"Factor": factor}
    token = site.http.post(EXCHANGE_TOKEN, headers=sent).json()["token"]
    headers = {b"Authorization": f"Bearer {token}".encode(), b"Factor": factor}
    assert site.http.post("/api/permissions/user/info", json={}, headers=headers).status_code == 200
    assert site.http.post(EXCHANGE, headers=headers).status_code == 200
    assert site.revoke(data["refresh_token"]).status_code == 200
    assert site.http.post("/api/permissions/user/info", json={}, headers=headers).status_code == 401
    assert site.http.post(EXCHANGE, headers=headers).status_code == 401
