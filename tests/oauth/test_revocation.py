"""POST /proxy/oauth/token/revoke."""

import pytest

from tests.kit.oauth import REVOKE, Browser, Site, error_of, new_site
from tests.kit.server import Server


@pytest.fixture(params=["strict", "oidc"])
def either(request: pytest.FixtureRequest, site: Site, oidc: Site) -> Site:
    return site if request.param == "strict" else oidc


def test_revocation_invalidates_the_refresh_token_and_the_access_tokens_of_its_grant(
    either: Site, browser: Browser
) -> None:
    first = either.tokens(browser)
    second = either.refresh(first["refresh_token"]).json()
    response = either.revoke(second["refresh_token"])
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}
    for access in (first["access_token"], second["access_token"]):
        assert error_of(either.userinfo(access)) == (401, "invalid_token")
    assert either.refresh(second["refresh_token"]).status_code == 400


def test_body_may_be_json(site: Site, browser: Browser) -> None:
    body = {
        "client_id": site.client_id,
        "client_secret": site.secret,
        "refresh_token": site.tokens(browser)["refresh_token"],
    }
    assert site.http.post(REVOKE, json=body).json() == {"status": "ok"}


def test_invalid_or_already_revoked_token_is_an_invalid_request(either: Site, browser: Browser) -> None:
    data = either.tokens(browser)
    old, new = data["refresh_token"], either.refresh(data["refresh_token"]).json()["refresh_token"]
    for bad in ("garbage", data["access_token"], data["id_token"], old, new[:-5]):
        assert error_of(either.revoke(bad)) == (400, "invalid_request")
    assert either.revoke(new).status_code == 200
    assert error_of(either.revoke(new)) == (400, "invalid_request")


def test_revocation_of_two_tokens_at_once_is_refused(either: Site, browser: Browser) -> None:
    """Otherwise one token would be ignored, and the client would believe that it is revoked."""
    one, other = either.tokens(browser), either.tokens(browser)
    body = {"client_id": either.client_id, "client_secret": either.secret}
    body |= {"refresh_token": one["refresh_token"], "token": other["refresh_token"]}
    response = either.http.post(REVOKE, data=body)
    assert error_of(response) == (400, "invalid_request")
    assert response.json()["error_description"] == "refresh_token and token: expected one of them"
    for data in (one, other):
        assert either.userinfo(data["access_token"]).status_code == 200


def test_token_of_another_client_is_not_revoked(server: Server, either: Site, browser: Browser) -> None:
    data = either.tokens(browser)
    other = new_site(server, profile=either.profile)
    assert error_of(other.revoke(data["refresh_token"])) == (400, "invalid_request")
    assert either.userinfo(data["access_token"]).status_code == 200


@pytest.mark.parametrize(
    "changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": "unknown"}, {"client_id": None}]
)
def test_revocation_requires_client_authentication(
    either: Site, browser: Browser, changes: dict[str, str | None]
) -> None:
    token = either.tokens(browser)["refresh_token"]
    assert error_of(either.revoke(token, **changes)) == (401, "invalid_client")
    assert either.refresh(token).status_code == 200


@pytest.mark.parametrize("value", [None, ""])
def test_revocation_without_refresh_token_is_an_invalid_request(either: Site, value: str | None) -> None:
    assert error_of(either.revoke("", refresh_token=value)) == (400, "invalid_request")


def test_oidc_client_may_revoke_by_rfc_7009(oidc: Site, browser: Browser) -> None:
    data = oidc.tokens(browser)
    for token in ("garbage", data["access_token"], data["refresh_token"], data["refresh_token"]):
        form = {"token": token, "token_type_hint": "refresh_token"}
        response = oidc.http.post(REVOKE, data=form, headers=oidc.basic())
        assert response.status_code == 200, response.text
        if token == data["access_token"]:
            assert oidc.userinfo(token).status_code == 401
            assert oidc.refresh(data["refresh_token"]).status_code == 200
            data = oidc.tokens(browser)
    assert error_of(oidc.http.post(REVOKE, data={"token": "x"}, headers=oidc.basic("wrong"))) == (401, "invalid_client")


def test_strict_client_must_send_refresh_token_and_secret_in_the_body(site: Site, browser: Browser) -> None:
    data = site.tokens(browser)
    form = {"client_id": site.client_id, "client_secret": site.secret, "token": data["refresh_token"]}
    assert error_of(site.http.post(REVOKE, data=form)) == (400, "invalid_request")
    form = {"refresh_token": data["refresh_token"]}
    assert error_of(site.http.post(REVOKE, data=form, headers=site.basic())) == (401, "invalid_client")
    assert error_of(site.http.post(REVOKE, data={**form, "client_id": site.client_id}, headers=site.bearer())) == (
        401,
        "invalid_client",
    )
    assert site.userinfo(data["access_token"]).status_code == 200


def test_replaced_token_of_an_oidc_client_revokes_its_grant_by_rfc_7009(oidc: Site, browser: Browser) -> None:
    old = oidc.tokens(browser)["refresh_token"]
    newer = oidc.refresh(old).json()
    form = {"client_id": oidc.client_id, "client_secret": oidc.secret, "token": old}
    assert oidc.http.post("/proxy/oauth/token/revoke", data=form).status_code == 200
    assert oidc.userinfo(newer["access_token"]).status_code == 401
