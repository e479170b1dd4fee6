"""POST /proxy/oauth/token/revoke."""

import pytest

from tests.kit.oauth import REVOKE, Browser, Site, error_of, new_site
from tests.kit.server import Server


@pytest.fixture(params=["strict", "oidc"])
def either(request: pytest.FixtureRequest, site: Site, oidc: Site) -> Site:
    return site if request.param == "strict" else oidc


def test_revocation_ends_the_refresh_token_and_the_access_tokens_of_its_grant(either: Site, browser: Browser) -> None:
    first = either.tokens(browser)
    second = either.refresh(first["refresh_token"]).json()
    answer = either.revoke(second["refresh_token"])
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}
    for access in (first["access_token"], second["access_token"]):
        assert error_of(either.userinfo(access)) == (401, "invalid_token")
    assert either.refresh(second["refresh_token"]).status_code == 400


def test_json_is_as_good_as_a_form(site: Site, browser: Browser) -> None:
    body = {
        "client_id": site.client_id,
        "client_secret": site.secret,
        "refresh_token": site.tokens(browser)["refresh_token"],
    }
    assert site.http.post(REVOKE, json=body).json() == {"status": "ok"}


def test_a_bad_or_already_revoked_token_is_an_invalid_request(either: Site, browser: Browser) -> None:
    data = either.tokens(browser)
    old, new = data["refresh_token"], either.refresh(data["refresh_token"]).json()["refresh_token"]
    for bad in ("garbage", data["access_token"], data["id_token"], old, new[:-5]):
        assert error_of(either.revoke(bad)) == (400, "invalid_request")
    assert either.revoke(new).status_code == 200
    assert error_of(either.revoke(new)) == (400, "invalid_request")


def test_revocation_of_two_tokens_at_once_is_refused_and_ends_neither(either: Site, browser: Browser) -> None:
    """One of the two would be ignored, and its holder would believe that it has ended."""
    one, other = either.tokens(browser), either.tokens(browser)
    body = {"client_id": either.client_id, "client_secret": either.secret}
    body |= {"refresh_token": one["refresh_token"], "token": other["refresh_token"]}
    answer = either.http.post(REVOKE, data=body)
    assert error_of(answer) == (400, "invalid_request")
    assert answer.json()["error_description"] == "refresh_token and token: expected one of them"
    for data in (one, other):
        assert either.userinfo(data["access_token"]).status_code == 200


def test_another_clients_token_stays_alive(server: Server, either: Site, browser: Browser) -> None:
    data = either.tokens(browser)
    other = new_site(server, profile=either.profile)
    assert error_of(other.revoke(data["refresh_token"])) == (400, "invalid_request")
    assert either.userinfo(data["access_token"]).status_code == 200


@pytest.mark.parametrize(
    "changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": "nobody"}, {"client_id": None}]
)
def test_the_client_must_prove_itself(either: Site, browser: Browser, changes: dict[str, str | None]) -> None:
    token = either.tokens(browser)["refresh_token"]
    assert error_of(either.revoke(token, **changes)) == (401, "invalid_client")
    assert either.refresh(token).status_code == 200


@pytest.mark.parametrize("value", [None, ""])
def test_the_refresh_token_is_required(either: Site, value: str | None) -> None:
    assert error_of(either.revoke("", refresh_token=value)) == (400, "invalid_request")


def test_standard_clients_may_revoke_as_in_rfc_7009(oidc: Site, browser: Browser) -> None:
    data = oidc.tokens(browser)
    for token in ("garbage", data["access_token"], data["refresh_token"], data["refresh_token"]):
        form = {"token": token, "token_type_hint": "refresh_token"}
        answer = oidc.http.post(REVOKE, data=form, headers=oidc.basic())
        assert answer.status_code == 200, answer.text
        if token == data["access_token"]:
            assert oidc.userinfo(token).status_code == 401
            assert oidc.refresh(data["refresh_token"]).status_code == 200
            data = oidc.tokens(browser)
    assert error_of(oidc.http.post(REVOKE, data={"token": "x"}, headers=oidc.basic("wrong"))) == (401, "invalid_client")


def test_a_strict_client_keeps_to_the_specification(site: Site, browser: Browser) -> None:
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


def test_as_in_rfc_7009_an_older_token_ends_its_grant_too(oidc: Site, browser: Browser) -> None:
    old = oidc.tokens(browser)["refresh_token"]
    newer = oidc.refresh(old).json()
    form = {"client_id": oidc.client_id, "client_secret": oidc.secret, "token": old}
    assert oidc.http.post("/proxy/oauth/token/revoke", data=form).status_code == 200
    assert oidc.userinfo(newer["access_token"]).status_code == 401
