"""Client authentication with private_key_jwt."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sso.core.keys import public_jwk
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.oauth import INTROSPECT, REVOKE, TOKEN, Browser, Site, error_of, new_site
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

JWKS = {"keys": [public_jwk(key.public_key(), f"key-{algorithm}") for algorithm, key in KEYS.items()]}


@pytest.fixture(scope="module")
def app(server: Server) -> Site:
    return new_site(server, public=True, profile="oidc", token_endpoint_auth_method="private_key_jwt", jwks=JWKS)


@pytest.mark.parametrize("algorithm", list(KEYS))
def test_assertion_authenticates_at_token_refresh_and_revocation(app: Site, browser: Browser, algorithm: str) -> None:
    for _ in range(2):  # the second time, the client is cached
        tokens = app.redeem(browser.code(app), headers={}, **fields(assertion(app, algorithm))).json()
        tokens = app.refresh(tokens["refresh_token"], headers={}, **fields(assertion(app, algorithm))).json()
        revocation = fields(assertion(app, algorithm), token=tokens["refresh_token"])
        assert app.http.post(REVOKE, data=revocation).json() == {"status": "ok"}
        assert app.userinfo(tokens["access_token"]).status_code == 401


@pytest.mark.parametrize("audience", ["{}", "{}/proxy/oauth/token", ["{}"], ["{}", "{}/proxy/oauth/token"]])
def test_audience_is_the_issuer_or_the_token_endpoint(app: Site, browser: Browser, audience: Any) -> None:
    base = app.server.base_url
    aud = [item.format(base) for item in audience] if isinstance(audience, list) else audience.format(base)
    assert app.redeem(browser.code(app), headers={}, **fields(assertion(app, aud=aud))).status_code == 200


def test_audience_is_the_endpoint_that_gets_the_assertion(app: Site) -> None:
    for path, other, error in (
        (REVOKE, INTROSPECT, "invalid_request"),
        (INTROSPECT, REVOKE, "unauthorized_client"),
        (TOKEN, REVOKE, "invalid_request"),
    ):
        own = assertion(app, aud=app.server.base_url + path)  # of a request that lacks something else
        assert error_of(app.http.post(path, data=fields(own)))[1] == error, path
        foreign = assertion(app, aud=app.server.base_url + other)
        assert error_of(app.http.post(path, data=fields(foreign))) == (401, "invalid_client"), path


def test_assertion_works_once(app: Site, browser: Browser) -> None:
    token = assertion(app)
    assert app.redeem(browser.code(app), headers={}, **fields(token)).status_code == 200
    assert error_of(app.redeem(browser.code(app), headers={}, **fields(token))) == (401, "invalid_client")
    assert error_of(app.http.post(REVOKE, data=fields(token, token="x"))) == (401, "invalid_client")


INVALID_ASSERTIONS: tuple[dict[str, Any], ...] = (
    {"iss": "other"},
    {"iss": None},
    {"sub": "other"},
    {"sub": None},
    {"sub": 1},
    {"aud": "https://evil.example"},
    {"aud": None},
    {"aud": []},
    {"aud": ["{base}", "https://evil.example"]},
    {"exp": None},
    {"exp": "soon"},
    {"exp": 1},
    {"exp": int(time.time()) + 10 * 86400},
    {"iat": int(time.time()) + 3600},
    {"nbf": int(time.time()) + 3600},
    {"jti": None},
    {"jti": ""},
    {"jti": "x" * 300},
    {"jti": 5},
    {"jti": "\ud800"},
    {"kid": "unknown"},
    {"kid": None},  # the client has several keys
    {"key": ec.generate_private_key(ec.SECP256R1())},
    {"algorithm": "HS256", "key": "0123456789abcdef0123456789abcdef"},
    {"algorithm": "RS256", "key": rsa_key(1)},
    {"algorithm": "PS256", "key": KEYS["RS256"], "kid": "key-RS256"},
)


@pytest.mark.parametrize("part", [INVALID_ASSERTIONS[::2], INVALID_ASSERTIONS[1::2]])
def test_invalid_assertions_are_refused(app: Site, browser: Browser, part: tuple[dict[str, Any], ...]) -> None:
    """In two parts, because a code is blocked after 20 failures."""
    code, base_url = browser.code(app), app.server.base_url
    for changes in part:
        aud = json.loads(json.dumps(changes.get("aud")).replace("{base}", base_url))
        answer = app.redeem(code, headers={}, **fields(assertion(app, **(changes | {"aud": aud} if aud else changes))))
        assert error_of(answer) == (401, "invalid_client"), changes
    assert app.redeem(code, headers={}, **fields(assertion(app))).status_code == 200  # the code still works


@pytest.mark.parametrize("token", ["x", "a.b.c", "a" * 4096, "e30.e30.e30", "é"])
def test_malformed_assertions_are_refused(app: Site, token: str) -> None:
    form = fields(token, grant_type="authorization_code", code="x", redirect_uri=app.redirect_uri)
    assert error_of(app.http.post(TOKEN, data=form)) == (401, "invalid_client")


def test_key_without_a_name_is_used_if_it_is_the_only_one(server: Server, browser: Browser) -> None:
    jwk = {name: value for name, value in JWKS["keys"][1].items() if name != "kid"}
    site = new_site(
        server, public=True, profile="oidc", token_endpoint_auth_method="private_key_jwt", jwks={"keys": [jwk]}
    )
    for kid in (None, "any"):
        assert site.redeem(browser.code(site), headers={}, **fields(assertion(site, kid=kid))).status_code == 200


def test_other_methods_are_refused(server: Server, app: Site, oidc: Site, browser: Browser) -> None:
    for headers, more in (
        ({}, {"client_id": app.client_id}),
        (app.basic("x"), {}),
        ({}, {"client_id": app.client_id, "client_secret": "x"}),
    ):
        assert error_of(app.redeem(browser.code(app), headers=headers, **more)) == (401, "invalid_client")
    assert error_of(oidc.redeem(browser.code(oidc), headers={}, **fields(assertion(oidc)))) == (401, "invalid_client")
    answer = app.redeem(browser.code(app), headers=app.basic("x"), **fields(assertion(app)))
    assert error_of(answer) == (400, "invalid_request")
    wrong = fields(assertion(app)) | {"client_assertion_type": "other"}
    assert error_of(app.redeem(browser.code(app), headers={}, **wrong)) == (400, "invalid_request")
    answer = app.redeem(browser.code(app), headers={}, **fields(assertion(app), client_id="other"))
    assert error_of(answer) == (401, "invalid_client")


def test_removed_key_is_refused_at_once_although_the_client_is_cached(server: Server, browser: Browser) -> None:
    site = new_site(server, public=True, profile="oidc", token_endpoint_auth_method="private_key_jwt", jwks=JWKS)
    tokens = site.redeem(browser.code(site), headers={}, **fields(assertion(site))).json()
    left = {"keys": [jwk for jwk in JWKS["keys"] if jwk["alg"] != "ES256"]}
    server.apply({"clients": [{"client_id": site.client_id, "jwks": left}]})
    answer = site.refresh(tokens["refresh_token"], headers={}, **fields(assertion(site)))
    assert error_of(answer) == (401, "invalid_client")
    answer = site.refresh(tokens["refresh_token"], headers={}, **fields(assertion(site, "EdDSA")))
    assert answer.status_code == 200


def test_client_add_reads_the_keys_from_a_file(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(JWKS))
    arguments = ("client", "add", "with-keys", "--profile", "oidc", "--host", "a.example.com")
    method = ("--token-endpoint-auth-method", "private_key_jwt")
    assert "secret" not in server.sso(*arguments, *method, "--jwks", str(file)).stdout
    assert json.loads(server.sso("client", "show", "with-keys").stdout)["jwks"] == JWKS
    failed = server.sso("client", "add", "no-keys", *arguments[3:], *method, check=False)
    assert "--jwks: is required" in failed.stderr
    exported = json.loads(server.sso("export").stdout)["clients"]
    record = next(client for client in exported if client["client_id"] == "with-keys")
    assert record["jwks"] == JWKS
    assert record["public"] is False
    server.apply({"clients": [record]})


@pytest.mark.parametrize(
    ("jwk", "error"),
    [
        ({"kty": "oct", "k": "AAAA"}, "public key"),
        ({"kty": "RSA", "n": "AQAB", "e": "AQAB"}, "keys[0]: "),
        ({**JWKS["keys"][0], "e": "AQAAAAAB"}, "exponent"),
        ({**JWKS["keys"][0], "d": "AQAB"}, "private"),
        ({**JWKS["keys"][0], "alg": "PS384"}, "alg: expected"),
        ({**JWKS["keys"][1], "x": JWKS["keys"][1]["y"]}, "keys[0]: "),
        ({**JWKS["keys"][1], "crv": "P-384"}, "P-256"),
        ({**JWKS["keys"][2], "use": "enc"}, "signatures"),
        ([], "expected a JWK"),
    ],
)
def test_unusable_keys_are_refused(server: Server, jwk: Any, error: str) -> None:
    record = {"client_id": "bad", "profile": "oidc", "redirect_hosts": ["a.example.com"], "jwks": {"keys": [jwk]}}
    result = server.sso("apply", "-", stdin=json.dumps({"clients": [record]}), check=False)
    assert result.returncode == 1
    assert "clients[0].jwks: " in result.stderr
    assert error in result.stderr


def test_discovery_lists_private_key_jwt(app: Site) -> None:
    document = app.http.get("/.well-known/openid-configuration").json()
    assert "private_key_jwt" in document["token_endpoint_auth_methods_supported"]
    assert set(document["token_endpoint_auth_signing_alg_values_supported"]) == {"PS256", *KEYS}
