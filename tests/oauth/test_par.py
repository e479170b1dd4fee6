"""Pushed authorization requests (RFC 9126)."""

import json
from typing import Any

import httpx
import pytest

from sso.core.keys import public_jwk
from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.oauth import AUTHORIZE, PAR, Browser, Site, error_of, new_browser, new_site, pkce, query_of
from tests.kit.server import Server

PREFIX = "urn:ietf:params:oauth:request_uri:"
JWKS = {"keys": [public_jwk(key.public_key(), f"key-{algorithm}") for algorithm, key in KEYS.items()]}


def push(site: Site, headers: dict[str, str] | None = None, **changes: Any) -> httpx.Response:
    return site.http.post(PAR, data=site.query(**changes), headers=site.basic() if headers is None else headers)


def pushed(site: Site, headers: dict[str, str] | None = None, **changes: Any) -> str:
    """Pushes a request and returns its request URI."""
    answer = push(site, headers, **changes)
    assert answer.status_code == 201, answer.text
    request_uri: str = answer.json()["request_uri"]
    return request_uri


def follow(browser: Browser, site: Site, request_uri: str, **more: str) -> httpx.Response:
    parameters = {"client_id": site.client_id, "request_uri": request_uri, **more}
    return browser.http.get(AUTHORIZE, params=parameters)


def test_pushed_request_leads_to_tokens(oidc: Site, browser: Browser) -> None:
    verifier, challenge = pkce()
    answer = push(oidc, code_challenge=challenge, code_challenge_method="S256", state="pushed state é")
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    data = answer.json()
    assert set(data) == {"request_uri", "expires_in"}
    assert data["request_uri"].startswith(PREFIX)
    assert data["expires_in"] == 90
    redirect = follow(browser, oidc, data["request_uri"])
    assert redirect.status_code == 302
    assert query_of(redirect)["state"] == "pushed state é"
    tokens = oidc.redeem(query_of(redirect)["code"], headers=oidc.basic(), code_verifier=verifier)
    assert oidc.claims(tokens.json()["id_token"])["nonce"] == "n-1"


def test_request_uri_works_once(oidc: Site, browser: Browser) -> None:
    request_uri = pushed(oidc)
    assert "code" in query_of(follow(browser, oidc, request_uri))
    again = follow(browser, oidc, request_uri)
    assert again.status_code == 400
    assert "Location" not in again.headers
    assert "expired or is already finished" in again.text


def test_request_uri_belongs_to_its_client(server: Server, oidc: Site, browser: Browser) -> None:
    other = new_site(server, profile="oidc")
    request_uri = pushed(oidc)
    assert follow(browser, other, request_uri).status_code == 400
    assert "code" in query_of(follow(browser, oidc, request_uri))  # the attempt did not use it up


def test_request_uri_expires(oidc: Site, browser: Browser) -> None:
    request_uri = pushed(oidc)
    shift = "UPDATE oauth_pushed_requests SET expires = expires - interval '91 s' WHERE client_id = $1 RETURNING 1"
    assert query(oidc.server, shift, oidc.client_id)
    assert follow(browser, oidc, request_uri).status_code == 400


@pytest.mark.parametrize("request_uri", [PREFIX, PREFIX + "x", PREFIX + "A" * 43, PREFIX + "é" * 43, PREFIX + "\0"])
def test_unknown_request_uri_is_refused_with_a_page(oidc: Site, browser: Browser, request_uri: str) -> None:
    answer = follow(browser, oidc, request_uri)
    assert answer.status_code == 400
    assert "Location" not in answer.headers


def test_text_that_is_no_client_id_is_refused_with_a_page(browser: Browser) -> None:
    answer = browser.http.get(f"/proxy/oauth/authorize?client_id=%00&request_uri={PREFIX}{'A' * 43}")
    assert (answer.status_code, "Location" in answer.headers) == (400, False)


def test_parameters_beside_the_request_uri_are_ignored(oidc: Site, browser: Browser) -> None:
    answer = follow(
        browser, oidc, pushed(oidc), state="other", redirect_uri="https://evil.example/cb", scope="openid email"
    )
    assert answer.headers["Location"].startswith(oidc.redirect_uri)
    assert query_of(answer)["state"] == "s-1"


def test_other_request_uris_are_still_not_supported(oidc: Site, browser: Browser) -> None:
    answer = browser.authorize(oidc, request_uri="https://game.example.com/request.jwt")
    assert query_of(answer)["error"] == "request_uri_not_supported"


def test_sign_in_page_of_a_pushed_request_can_be_reloaded(server: Server, oidc: Site) -> None:
    browser = new_browser(server)
    redirect = follow(browser, oidc, pushed(oidc, login_hint=browser.login))
    assert redirect.status_code == 302
    for _ in range(2):
        page = browser.http.get(redirect.headers["Location"])
        assert page.status_code == 200
        assert browser.login in page.text
    done = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
    assert done.headers["Location"].startswith(oidc.redirect_uri)
    assert "code" in query_of(done)


def test_consent_page_of_a_pushed_request_can_be_reloaded(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc", consent=True)
    redirect = follow(browser, site, pushed(site))
    for _ in range(2):
        page = browser.http.get(redirect.headers["Location"])
        assert page.status_code == 200
    assert "code" in query_of(browser.submit(page, {"decision": "allow"}, form=0))


def test_prompt_none_is_answered_with_a_redirect(server: Server, oidc: Site) -> None:
    answer = follow(new_browser(server), oidc, pushed(oidc, prompt="none"))
    assert query_of(answer) == {
        "error": "login_required", "error_description": "the user must sign in", "state": "s-1",
        "iss": server.base_url
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uri": "https://evil.example/cb"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"scope": "openid unknown"}, "invalid_scope"),
        ({"scope": None}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
        ({"id_token_hint": "x"}, "invalid_request"),
        ({"code_challenge": "x", "code_challenge_method": "plain"}, "invalid_request"),
        ({"request_uri": f"{PREFIX}x"}, "invalid_request"),
        ({"request": "e30.e30."}, "request_not_supported"),
        ({"state": "s" * 5000}, "invalid_request"),
        ({"state": ["a", "b"]}, "invalid_request"),
    ],
)
def test_invalid_requests_are_refused_when_they_are_pushed(oidc: Site, changes: dict[str, Any], error: str) -> None:
    assert error_of(push(oidc, **changes)) == (400, error)


def test_body_is_limited_and_must_have_texts(oidc: Site) -> None:
    large = push(oidc, unknown="x" * 40_000)
    assert error_of(large) == (413, "invalid_request")
    numbers = oidc.http.post(PAR, json={**oidc.query(), "max_age": 5}, headers=oidc.basic())
    assert error_of(numbers) == (400, "invalid_request")
    assert oidc.http.post(PAR, json=oidc.query(), headers=oidc.basic()).status_code == 201
    assert oidc.http.post(PAR, content=b"x", headers=oidc.basic()).status_code == 400
    assert oidc.http.get(PAR).status_code == 405


def test_client_authentication_is_that_of_the_token_endpoint(server: Server, oidc: Site, site: Site) -> None:
    secret = {"client_secret": oidc.secret}
    assert push(oidc, headers={}, **secret).status_code == 201
    assert push(site, headers=site.bearer(), nonce="n").status_code == 201  # the bearer of the profile strict
    for answer in (
        push(oidc, headers=oidc.basic("wrong")),
        push(oidc, headers={}),
        push(oidc, headers={}, client_id="unknown"),
        push(oidc, headers={}, client_id=None),
        push(site, headers=site.basic()),
        push(site, headers=site.bearer(redirect_uri="https://game.example.com/other")),
    ):
        assert error_of(answer) == (401, "invalid_client")
        assert "WWW-Authenticate" in answer.headers
    server.apply({"clients": [{"client_id": oidc.client_id, "disabled": True}]})
    assert error_of(push(oidc)) == (401, "invalid_client")
    server.apply({"clients": [{"client_id": oidc.client_id, "disabled": False}]})


def test_public_client_pushes_with_its_client_id(server: Server, browser: Browser) -> None:
    site = new_site(server, public=True, profile="oidc")
    assert error_of(push(site, headers={})) == (400, "invalid_request")  # no code_challenge
    verifier, challenge = pkce()
    request_uri = pushed(site, headers={}, code_challenge=challenge, code_challenge_method="S256")
    code = query_of(follow(browser, site, request_uri))["code"]
    answer = site.redeem(code, headers={}, client_id=site.client_id, code_verifier=verifier)
    assert answer.status_code == 200


def test_assertion_of_a_pushed_request(server: Server, browser: Browser) -> None:
    app = new_site(server, public=True, profile="oidc", token_endpoint_auth_method="private_key_jwt", jwks=JWKS)
    base = server.base_url
    for audience in (base, f"{base}/proxy/oauth/token", base + PAR):
        sent = fields(assertion(app, aud=audience))
        assert "code" in query_of(follow(browser, app, pushed(app, headers={}, **sent)))
        assert error_of(push(app, headers={}, **sent)) == (401, "invalid_client")  # it works once
    other_path = fields(assertion(app, aud=f"{base}/proxy/oauth/introspect"))
    assert error_of(push(app, headers={}, **other_path)) == (401, "invalid_client")
    at_token = app.redeem("x", headers={}, **fields(assertion(app, aud=base + PAR)))
    assert error_of(at_token) == (401, "invalid_client")


def test_no_secret_is_stored(server: Server, oidc: Site) -> None:
    request_uri = pushed(oidc, headers={}, client_secret=oidc.secret, unknown="not-stored")
    rows = query(server, "SELECT encode(query, 'escape') AS query FROM oauth_pushed_requests")
    stored = " ".join(row["query"] for row in rows)
    assert oidc.client_id in stored
    for text in (str(oidc.secret), "not-stored", request_uri.removeprefix(PREFIX)):
        assert text not in stored


def test_client_that_requires_pushed_requests(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc", require_pushed_authorization_requests=True)
    refused = query_of(browser.authorize(site))
    assert refused["error"] == "invalid_request"
    assert "RFC 9126" in refused["error_description"]
    assert "code" in query_of(follow(browser, site, pushed(site)))
    shown = json.loads(server.sso("client", "show", site.client_id).stdout)
    assert shown["require_pushed_authorization_requests"] is True
    server.sso("client", "set", site.client_id, "--no-require-pushed-authorization-requests")
    assert "code" in query_of(browser.authorize(site))
    exported = json.loads(server.sso("export").stdout)["clients"]
    record = next(client for client in exported if client["client_id"] == site.client_id)
    assert "require_pushed_authorization_requests" not in record


def test_redirect_uri_that_was_removed_after_the_push_is_refused(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    request_uri = pushed(site)
    server.apply({"clients": [{"client_id": site.client_id, "redirect_hosts": ["other.example.com"]}]})
    answer = follow(browser, site, request_uri)
    assert answer.status_code == 400
    assert "Location" not in answer.headers


def test_discovery_advertises_the_endpoint(oidc: Site) -> None:
    document = oidc.http.get("/.well-known/openid-configuration").json()
    assert document["pushed_authorization_request_endpoint"] == oidc.server.base_url + PAR
    assert document["require_pushed_authorization_requests"] is False
