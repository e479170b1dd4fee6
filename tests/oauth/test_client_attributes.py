"""The attributes of clients: what each of them allows and refuses."""

import json
from typing import Any

import pytest

from sso.core.field_errors import FieldError
from tests.kit.browser import query
from tests.kit.oauth import AUTHORIZE, REVOKE, Browser, error_of, new_site, pkce, query_of
from tests.kit.server import Server, clean_environment
from tests.kit.terminal import run_sso_on_terminal


@pytest.mark.parametrize(
    ("method", "accepted"), [("client_secret_basic", "basic"), ("client_secret_post", "body"), ("", "all")]
)
def test_only_the_registered_authentication_method_is_accepted(
    server: Server, browser: Browser, method: str, accepted: str
) -> None:
    site = new_site(server, profile="oidc", token_endpoint_auth_method=method)
    body = {"client_id": site.client_id, "client_secret": site.secret}
    attempts: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
        "basic": (site.basic(), {}),
        "body": ({}, body),
        "bearer": (site.bearer(), {}),
        "none": ({}, {"client_id": site.client_id}),
    }
    for _ in range(2):  # the second time, the client is cached
        for name, (headers, fields) in attempts.items():
            answer = site.redeem(browser.code(site), headers=headers, **fields)
            if name == accepted or (accepted == "all" and name != "none"):
                assert answer.status_code == 200, name
            else:
                assert error_of(answer) == (401, "invalid_client"), name
    revocation = {"token": "unknown", **body}
    assert site.http.post(REVOKE, data=revocation).status_code == (401 if accepted == "basic" else 200)


def test_change_of_the_authentication_method_acts_on_a_cached_client(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    token = site.redeem(browser.code(site), headers=site.basic()).json()["refresh_token"]
    token = site.refresh(token, headers=site.basic()).json()["refresh_token"]
    server.apply({"clients": [{"client_id": site.client_id, "token_endpoint_auth_method": "client_secret_post"}]})
    assert error_of(site.refresh(token, headers=site.basic())) == (401, "invalid_client")
    assert error_of(site.redeem(browser.code(site), headers=site.basic())) == (401, "invalid_client")
    fields = {"client_id": site.client_id, "client_secret": site.secret}
    assert site.refresh(token, headers={}, **fields).status_code == 200


def test_method_none_makes_a_client_public(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    server.apply({"clients": [{"client_id": site.client_id, "token_endpoint_auth_method": "none"}]})
    assert query_of(browser.authorize(site))["error"] == "invalid_request"  # a public client needs PKCE
    verifier, challenge = pkce()
    code = browser.code(site, code_challenge=challenge, code_challenge_method="S256")
    assert error_of(site.redeem(code, headers=site.basic(), code_verifier=verifier)) == (401, "invalid_client")
    answer = site.redeem(code, headers={}, client_id=site.client_id, code_verifier=verifier)
    assert answer.status_code == 200


def test_client_without_refresh_token_among_its_grant_types_gets_none(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    token = site.tokens(browser)["refresh_token"]
    server.apply({"clients": [{"client_id": site.client_id, "grant_types": ["authorization_code"]}]})
    for _ in range(2):
        assert error_of(site.refresh(token)) == (400, "unauthorized_client")
    assert "refresh_token" not in site.tokens(browser)
    server.apply({"clients": [{"client_id": site.client_id, "grant_types": ["authorization_code", "refresh_token"]}]})
    assert site.refresh(token).status_code == 200  # the refused requests did not revoke the grant


def test_client_without_authorization_code_among_its_grant_types_gets_no_code(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    code = browser.code(site)
    server.apply({"clients": [{"client_id": site.client_id, "grant_types": ["refresh_token"]}]})
    assert error_of(site.redeem(code)) == (400, "unauthorized_client")
    answer = browser.authorize(site)
    assert query_of(answer)["error"] == "unauthorized_client"
    assert query_of(answer)["state"] == "s-1"


def test_logout_redirects_only_to_the_listed_uris(server: Server) -> None:
    listed = "https://game.example.com/bye"
    site = new_site(server, profile="oidc", post_logout_redirect_uris=[listed])
    for uri, status in ((listed, 303), ("https://game.example.com/other", 400), (listed + "?x=1", 400)):
        parameters = {"client_id": site.client_id, "post_logout_redirect_uri": uri}
        answer = site.http.get(f"{AUTHORIZE.removesuffix('authorize')}logout", params=parameters)
        assert answer.status_code == status, uri


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"grant_types": ["password"]}, "grant_types[0]: "),
        ({"grant_types": []}, "grant_types: "),
        ({"token_endpoint_auth_method": "client_secret_jwt"}, "token_endpoint_auth_method: "),
        ({"token_endpoint_auth_method": "client_secret_basic", "profile": "strict"}, "needs the profile oidc"),
        ({"token_endpoint_auth_method": "none", "client_secret": "0123456789abcdef"}, "has no client_secret"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "client_secret: is required"),
        ({"post_logout_redirect_uris": ["javascript:alert(1)"]}, "post_logout_redirect_uris[0]: "),
    ],
)
def test_contradicting_attributes_are_refused(server: Server, fields: dict[str, Any], error: str) -> None:
    record = {"client_id": "wrong", "redirect_hosts": ["a.example.com"], "profile": "oidc", **fields}
    with pytest.raises(FieldError) as caught:
        server.apply({"clients": [record]})
    assert "clients[0]" in str(caught.value)
    assert error in str(caught.value)
    assert query(server, "SELECT FROM oauth_clients WHERE client_id = 'wrong'") == []


def test_client_set_changes_only_the_given_attributes(server: Server) -> None:
    site = new_site(server, profile="oidc")
    server.sso("client", "set", site.client_id, "--grant-types", "authorization_code", "--name", "Other")
    shown = json.loads(server.sso("client", "show", site.client_id).stdout)
    assert (shown["grant_types"], shown["name"], shown["profile"]) == (["authorization_code"], "Other", "oidc")
    assert shown["redirect_hosts"] == ["game.example.com"]
    assert server.sso("client", "set", "nobody", "--name", "x", check=False).returncode == 1
    assert server.sso("client", "set", site.client_id, check=False).returncode == 2
    failed = server.sso("client", "set", site.client_id, "--grant-types", "password", check=False)
    assert failed.returncode == 1
    assert "--grant-types: " in failed.stderr


def test_client_add_requires_a_profile(server: Server) -> None:
    result = server.sso("client", "add", "nopro", "--host", "a.example.com", check=False)
    assert result.returncode == 2
    assert "--profile" in result.stderr


def test_client_add_asks_for_the_profile_on_a_terminal(server: Server) -> None:
    command = ["client", "add", "asked", "--host", "a.example.com"]
    code, output = run_sso_on_terminal(
        command, clean_environment(**server.settings), answers=[("Profile (oidc, fapi2, strict) [oidc]: ", "strict")]
    )
    assert code == 0, output
    assert json.loads(server.sso("client", "show", "asked").stdout)["profile"] == "strict"
