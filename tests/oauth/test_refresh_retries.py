"""A refresh that is repeated with the same Idempotency-Key gets the same tokens."""

from typing import Any

import httpx
import pytest

from tests.kit.oauth import REVOKE, TOKEN, Browser, Site, error_of, new_site
from tests.kit.postgres import execute
from tests.kit.server import Server

pytestmark = pytest.mark.two_workers

TOKENS = ("access_token", "id_token", "refresh_token")


def refresh(site: Site, token: str, key: str | None) -> httpx.Response:
    return site.refresh(token, headers=site.bearer() | ({"Idempotency-Key": key} if key is not None else {}))


def tokens_of(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    data = response.json()
    return {name: data[name] for name in TOKENS}


@pytest.mark.parametrize("id_alg", ["", "ES256", "EdDSA"])
@pytest.mark.parametrize("profile", ["oidc", "strict"])
def test_repeated_refresh_gets_the_same_tokens(server: Server, browser: Browser, profile: str, id_alg: str) -> None:
    site = new_site(server, profile=profile, id_alg=id_alg)
    token = site.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(site, token, "key-1"))
    for _ in range(6):
        with server.client() as fresh:  # a connection of its own, to either worker
            form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": site.redirect_uri}
            headers = site.bearer() | {"Idempotency-Key": "key-1"}
            assert tokens_of(fresh.post(TOKEN, data=form, headers=headers)) == first
    assert site.userinfo(first["access_token"]).status_code == 200
    second = tokens_of(refresh(site, first["refresh_token"], "key-1"))
    for name in ("access_token", "refresh_token"):
        assert second[name] != first[name]  # the same key for another token
    assert site.userinfo(second["access_token"]).status_code == 200


@pytest.mark.parametrize("key", [None, "another"])
def test_old_token_without_the_key_counts_as_reuse(oidc: Site, browser: Browser, key: str | None) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(oidc, token, "the-key"))
    assert error_of(refresh(oidc, token, key)) == (400, "invalid_grant")
    assert error_of(refresh(oidc, token, "the-key")) == (400, "invalid_grant")  # the grant is revoked
    assert oidc.userinfo(first["access_token"]).status_code == 401


def test_retry_after_the_new_token_was_used_counts_as_reuse(oidc: Site, browser: Browser) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(oidc, token, "k"))
    second = tokens_of(refresh(oidc, first["refresh_token"], None))
    assert error_of(refresh(oidc, token, "k")) == (400, "invalid_grant")
    assert oidc.userinfo(second["access_token"]).status_code == 401


def test_retry_after_a_minute_counts_as_reuse(server: Server, oidc: Site, browser: Browser) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(oidc, token, "k"))
    age = "UPDATE oauth_grants SET rotated = now() - interval '{} seconds' WHERE client_id = '{}'"
    execute(server.settings["SSO_DATABASE_URL"], age.format(50, oidc.client_id))
    assert tokens_of(refresh(oidc, token, "k")) == first
    execute(server.settings["SSO_DATABASE_URL"], age.format(61, oidc.client_id))
    assert error_of(refresh(oidc, token, "k")) == (400, "invalid_grant")


def test_retry_needs_the_authentication_of_the_same_client(server: Server, oidc: Site, browser: Browser) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(oidc, token, "k"))
    other = new_site(server, profile="oidc")
    headers = other.basic() | {"Idempotency-Key": "k"}
    assert oidc.refresh(token, headers=headers).status_code in (400, 401)
    assert error_of(oidc.refresh(token, headers=oidc.basic("wrong") | {"Idempotency-Key": "k"})) == (
        401,
        "invalid_client",
    )
    assert tokens_of(refresh(oidc, token, "k")) == first


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_malformed_keys_are_refused_and_change_nothing(oidc: Site, browser: Browser, key: str) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    headers = {**oidc.bearer(), "Idempotency-Key": key}
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    form = {"grant_type": "refresh_token", "refresh_token": token}
    assert error_of(oidc.http.post(TOKEN, data=form, headers=raw)) == (400, "invalid_request")
    assert refresh(oidc, token, None).status_code == 200


def test_revoked_grant_gives_no_retry(oidc: Site, browser: Browser) -> None:
    token = oidc.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(oidc, token, "k"))
    assert oidc.revoke(first["refresh_token"]).status_code == 200
    assert error_of(refresh(oidc, token, "k")) == (400, "invalid_grant")


def test_retry_does_not_revive_a_revoked_access_token(oidc: Site, browser: Browser) -> None:
    """Its repetition counts as the use of an old token."""
    token = oidc.tokens(browser)["refresh_token"]
    first = tokens_of(refresh(oidc, token, "k"))
    form = {"client_id": oidc.client_id, "client_secret": oidc.secret, "token": first["access_token"]}
    assert oidc.http.post(REVOKE, data=form).status_code == 200
    assert oidc.userinfo(first["access_token"]).status_code == 401
    repeated = refresh(oidc, token, "k")
    assert oidc.userinfo(first["access_token"]).status_code == 401
    assert error_of(repeated) == (400, "invalid_grant")
