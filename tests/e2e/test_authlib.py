"""Authlib, unmodified: discovery, PKCE, code, refresh, userinfo, revocation."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.kit.oauth import Browser, Site, close_all, new_browser, new_site
from tests.kit.server import Server

with warnings.catch_warnings(record=True):  # a deprecation warning at every import
    from authlib.integrations.httpx_client import OAuth2Client
    from authlib.oidc.core import CodeIDToken


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    return new_browser(server).sign_in()


@pytest.mark.parametrize("auth_method", ["client_secret_basic", "client_secret_post", "none"])
def test_authlib_signs_in_and_refreshes(server: Server, browser: Browser, auth_method: str) -> None:
    site = new_site(server, profile="oidc", public=auth_method == "none")
    config = site.http.get("/.well-known/openid-configuration").json()
    assert auth_method in config["token_endpoint_auth_methods_supported"]
    with _client(site, auth_method) as client:
        verifier = "v" * 64
        url, state = client.create_authorization_url(
            config["authorization_endpoint"], code_verifier=verifier, nonce="n-1"
        )
        answer = browser.http.get(url)
        assert answer.status_code == 302
        token = client.fetch_token(
            config["token_endpoint"],
            authorization_response=answer.headers["Location"],
            state=state,
            code_verifier=verifier,
        )
        claims = _verified(site, config, token["id_token"], nonce="n-1")
        assert claims["email"] == browser.login
        userinfo = client.get(config["userinfo_endpoint"]).json()
        assert userinfo["sub"] == claims["sub"]
        refreshed = client.refresh_token(config["token_endpoint"], refresh_token=token["refresh_token"])
        assert refreshed["refresh_token"] != token["refresh_token"]
        assert _verified(site, config, refreshed["id_token"], nonce="n-1")["sub"] == claims["sub"]
        revoked = client.revoke_token(
            config["revocation_endpoint"], token=refreshed["refresh_token"], token_type_hint="refresh_token"
        )
        assert revoked.status_code == 200
        assert client.get(config["userinfo_endpoint"]).status_code == 401


def _client(site: Site, auth_method: str) -> Any:
    return OAuth2Client(
        client_id=site.client_id,
        client_secret=site.secret,
        token_endpoint_auth_method=auth_method,
        revocation_endpoint_auth_method=auth_method,
        scope="openid offline_access email",
        redirect_uri=site.redirect_uri,
        code_challenge_method="S256",
    )


def _verified(site: Site, config: dict[str, Any], token: str, nonce: str) -> Any:
    keys = KeySet.import_key_set(site.http.get(config["jwks_uri"]).json())
    decoded = jwt.decode(token, keys, algorithms=config["id_token_signing_alg_values_supported"])
    claims = CodeIDToken(
        decoded.claims,
        decoded.header,
        options={"iss": {"value": config["issuer"]}, "aud": {"value": site.client_id}},
        params={"nonce": nonce, "client_id": site.client_id},
    )
    claims.validate()
    return claims
