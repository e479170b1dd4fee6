"""Clients of the profile fapi2 (FAPI 2.0 Security Profile)."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import jwt as pyjwt
import pytest

from sso.core.encryption import Keyring, MasterKey
from sso.core.ids import digest
from sso.oauth.tokens.dpop_nonces import DpopNonces
from tests.kit.browser import query
from tests.kit.client_assertions import assertion, fields
from tests.kit.dpop import DpopKey
from tests.kit.fapi import JWKS, REDIRECT_URI, FapiClient, new_fapi_client
from tests.kit.oauth import AUTHORIZE, PAR, TOKEN, Browser, error_of, new_site, pkce, query_of
from tests.kit.server import Server

pytestmark = pytest.mark.two_workers


@pytest.fixture(scope="module")
def client(server: Server) -> FapiClient:
    return new_fapi_client(server)


def test_whole_flow(client: FapiClient, browser: Browser) -> None:
    verifier, challenge = pkce()
    pushed = client.push(challenge)
    assert pushed.json()["expires_in"] < 600
    redirect = client.follow(browser, pushed)
    assert redirect.headers["Location"].startswith(REDIRECT_URI + "?")
    answer = query_of(redirect)
    assert (answer["iss"], answer["state"]) == (client.site.server.base_url, "s-1")
    life = "SELECT extract(epoch FROM expires - now()) AS s FROM oauth_codes WHERE digest = $1"
    assert query(client.site.server, life, digest(answer["code"]))[0]["s"] <= 60
    form = {"grant_type": "authorization_code", "code": answer["code"], "redirect_uri": REDIRECT_URI}
    tokens = client.send(TOKEN, {**form, "code_verifier": verifier}).json()
    assert tokens["token_type"] == "DPoP"
    assert pyjwt.get_unverified_header(tokens["id_token"])["alg"] == "ES256"
    assert client.site.claims(tokens["id_token"])["nonce"] == "n-1"
    assert client.userinfo(tokens["access_token"]).json()["sub"]
    for _ in range(2):  # the refresh token is not replaced
        refreshed = client.refresh(tokens["refresh_token"])
        assert refreshed.status_code == 200, refreshed.text
        assert "refresh_token" not in refreshed.json()
        assert client.userinfo(refreshed.json()["access_token"]).status_code == 200


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"redirect_uri": "https://game.example.com/cb/other"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"dpop_jkt": "A" * 43}, "invalid_dpop_proof"),
    ],
)
def test_pushed_requests_are_checked(client: FapiClient, changes: dict[str, Any], error: str) -> None:
    assert error_of(client.push(**changes)) == (400, error)


def test_authorization_request_must_be_pushed(client: FapiClient, browser: Browser) -> None:
    challenge = {"code_challenge": pkce()[1], "code_challenge_method": "S256"}
    answer = query_of(browser.authorize(client.site, **challenge))
    assert (answer["error"], answer["iss"]) == ("invalid_request", client.site.server.base_url)


def test_ports_of_this_machine_are_not_interchangeable(server: Server) -> None:
    uri = "http://127.0.0.1:4000/cb"
    client = new_fapi_client(server, redirect_uri=uri, redirect_uris=[uri])
    assert client.push().status_code == 201
    assert error_of(client.push(redirect_uri="http://127.0.0.1:4001/cb")) == (400, "invalid_request")


def test_service_demands_a_nonce_everywhere(server: Server, browser: Browser) -> None:
    """Two workers answer, so a nonce of one is accepted by the other."""
    client = new_fapi_client(server)
    form = client.site.query(code_challenge=pkce()[1], code_challenge_method="S256")
    refused = client.send(PAR, form, nonce=None)
    assert error_of(refused) == (400, "use_dpop_nonce")
    assert client.nonce == refused.headers["DPoP-Nonce"]
    token_request = client.code(browser)
    refused = client.send(TOKEN, token_request, nonce=None)
    assert error_of(refused) == (400, "use_dpop_nonce")
    tokens = client.send(TOKEN, token_request).json()  # the refused request has not used the code up
    refused = client.userinfo(tokens["access_token"], nonce=None)
    assert error_of(refused) == (401, "use_dpop_nonce")
    assert 'error="use_dpop_nonce"' in refused.headers["WWW-Authenticate"]
    answer = client.userinfo(tokens["access_token"], nonce=refused.headers["DPoP-Nonce"])
    assert (answer.status_code, "DPoP-Nonce" in answer.headers) == (200, True)


def test_other_clients_need_no_nonce(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    key = DpopKey("PS256")
    answer = site.redeem(browser.code(site), headers={**site.basic(), **key.headers(site)})
    assert (answer.status_code, "DPoP-Nonce" in answer.headers) == (200, False)


def test_concurrent_refreshes_all_succeed(client: FapiClient, browser: Browser) -> None:
    """They share a statement, and none of them may end the grant as a replay."""
    token = client.tokens(browser)["refresh_token"]
    shift = "UPDATE oauth_grants SET head_issued = head_issued - 7200 WHERE client_id = $1 RETURNING 1"
    assert query(client.site.server, shift, client.site.client_id)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.refresh(token), range(24)))
    assert [answer.status_code for answer in answers] == [200] * 24
    assert len({answer.json()["access_token"] for answer in answers}) == 24
    assert len({answer.json()["expires_in"] for answer in answers}) == 1
    assert client.refresh(token).status_code == 200


def test_client_credentials_need_a_proof(server: Server) -> None:
    server.apply({"applications": [{"application_id": 7700, "name": "fapi"}]})
    client = new_fapi_client(server, grant_types=["client_credentials"], application_id=7700)
    answer = client.send(TOKEN, {"grant_type": "client_credentials"})
    assert answer.json()["token_type"] == "DPoP"
    data = fields(assertion(client.site), grant_type="client_credentials")
    assert error_of(client.site.http.post(TOKEN, data=data)) == (400, "invalid_dpop_proof")


def test_change_of_the_profile_ends_bearer_tokens(server: Server, browser: Browser) -> None:
    site = new_site(
        server, public=True, profile="oidc", token_endpoint_auth_method="private_key_jwt", jwks=JWKS, redirect_hosts=[],
        redirect_uris=[REDIRECT_URI],
    )  # fmt: skip
    tokens = site.redeem(browser.code(site), headers={}, **fields(assertion(site))).json()
    server.apply({"clients": [{"client_id": site.client_id, "profile": "fapi2"}]})
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert error_of(FapiClient(site).refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert FapiClient(site).tokens(browser)["token_type"] == "DPoP"


def test_nonce_is_accepted_for_some_minutes_by_all_nodes() -> None:
    first, second = MasterKey.generate(), MasterKey.generate()
    clock: Any = SimpleNamespace(now=lambda: 1_000_000.0)
    nonce = DpopNonces(Keyring([first]), clock).current()
    other_node = DpopNonces(Keyring([second, first]), clock)  # the master key is being changed
    assert other_node.is_valid(nonce)
    assert not DpopNonces(Keyring([second]), clock).is_valid(nonce)
    for malformed in ("", ".", nonce + "x", nonce[:-1] + "é", f"999999.{nonce.partition('.')[2]}", "1" * 5000):
        assert not other_node.is_valid(malformed)
    clock.now = lambda: 1_000_000.0 + 301
    assert not other_node.is_valid(nonce)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"client_secret": "0123456789abcdef"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "token_endpoint_auth_method"),
        ({"dpop_bound_access_tokens": False}, "dpop_bound_access_tokens"),
        ({"require_pushed_authorization_requests": False}, "require_pushed_authorization_requests"),
        ({"jwks": {"keys": []}}, "jwks"),
        ({"redirect_hosts": ["game.example.com"]}, "redirect_hosts"),
        ({"grant_types": ["urn:ietf:params:oauth:grant-type:device_code"]}, "grant_types"),
        ({"public": True}, "public"),
        ({"jwks_uri": "https://game.example.com/keys"}, "jwks_uri"),
        ({"jwks_uri": "ftp://game.example.com/keys"}, "jwks_uri"),
    ],
)
def test_contradicting_attributes_are_refused(server: Server, changes: dict[str, Any], field: str) -> None:
    record = {"client_id": "contradiction", "profile": "fapi2", "jwks": JWKS, "redirect_uris": [REDIRECT_URI]}
    with pytest.raises(Exception, match=rf"clients\[0\]\.{field}"):
        server.apply({"clients": [record | changes]})


def test_profile_sets_the_attributes_that_it_demands(server: Server, client: FapiClient) -> None:
    (row,) = query(server, "SELECT * FROM oauth_clients WHERE client_id = $1", client.site.client_id)
    assert (row["token_endpoint_auth_method"], row["id_alg"], row["secret_sealed"]) == (
        "private_key_jwt",
        "ES256",
        None,
    )
    assert row["require_pushed_authorization_requests"]
    assert row["dpop_bound_access_tokens"]


def test_authorization_endpoint_has_no_cross_origin_headers(client: FapiClient, browser: Browser) -> None:
    answer = browser.http.get(AUTHORIZE, headers={"Origin": "https://game.example.com"})
    assert "Access-Control-Allow-Origin" not in answer.headers
