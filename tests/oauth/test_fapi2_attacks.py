"""Attacks on clients of the profile fapi2: replays, nonces and assertions of others, confused algorithms."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from sso.core.encryption import Keyring, MasterKey
from sso.core.keys import public_jwk
from sso.oauth.tokens.dpop_nonces import DpopNonces
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.dpop import DpopKey
from tests.kit.fapi import FapiClient, new_fapi_client
from tests.kit.oauth import INTROSPECT, PAR, REVOKE, TOKEN, USERINFO, Browser, error_of, pkce, query_of
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

pytestmark = pytest.mark.two_workers


@pytest.fixture(scope="module")
def client(server: Server, browser: Browser) -> FapiClient:
    client = new_fapi_client(server)
    client.tokens(browser)  # it knows a nonce
    return client


def send(client: FapiClient, path: str, form: dict[str, str], headers: dict[str, str]) -> httpx.Response:
    return client.site.http.post(path, data={**fields(assertion(client.site)), **form}, headers=headers)


def test_proof_is_used_once_at_every_endpoint(client: FapiClient, browser: Browser) -> None:
    tokens = client.tokens(browser)
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    par = client.site.query(code_challenge=pkce()[1], code_challenge_method="S256")
    for path, form in ((TOKEN, refresh), (PAR, par)):
        headers = client.key.headers(client.site, path, nonce=client.nonce)
        assert send(client, path, form, headers).is_success
        for _ in range(4):  # there are several workers
            assert error_of(send(client, path, form, headers)) == (400, "invalid_dpop_proof")
    headers = client.key.at_userinfo(client.site, tokens["access_token"], nonce=client.nonce)
    answers = [client.site.http.get(USERINFO, headers=headers) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 401, 401, 401]


def test_proof_for_one_endpoint_or_token_is_refused_at_another(client: FapiClient, browser: Browser) -> None:
    form = client.code(browser)
    at_par = client.key.headers(client.site, PAR, nonce=client.nonce)
    assert error_of(send(client, TOKEN, form, at_par)) == (400, "invalid_dpop_proof")
    first, second = client.send(TOKEN, form).json(), client.tokens(browser)
    headers = client.key.at_userinfo(client.site, first["access_token"], nonce=client.nonce)
    headers["Authorization"] = f"DPoP {second['access_token']}"
    assert client.site.http.get(USERINFO, headers=headers).status_code == 401


def foreign_nonce(age_s: int = 0) -> str:
    """Returns a nonce of another service, which has another master key."""
    clock: Any = type("Clock", (), {"now": lambda _: time.time() - age_s})()
    return DpopNonces(Keyring([MasterKey.generate()]), clock).current()


def with_other_time(nonce: str) -> str:
    moment, _, mac = nonce.partition(".")
    return f"{int(moment) + 30}.{mac}"


@pytest.mark.parametrize(
    "change", [lambda _: foreign_nonce(), with_other_time, lambda nonce: nonce[:-2], lambda _: "", lambda _: 5]
)
def test_nonces_that_were_not_handed_out_are_refused(
    client: FapiClient, browser: Browser, change: Callable[[str], Any]
) -> None:
    form = client.code(browser)
    assert client.nonce
    refused = client.send(TOKEN, form, nonce=change(client.nonce))
    assert error_of(refused) == (400, "use_dpop_nonce")
    assert client.send(TOKEN, form).status_code == 200  # with the nonce of that response


def test_same_nonce_with_a_new_proof_is_no_replay(client: FapiClient, browser: Browser) -> None:
    token, nonce = client.tokens(browser)["access_token"], client.nonce
    assert [client.userinfo(token, nonce=nonce).status_code for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("path", [PAR, TOKEN, REVOKE, INTROSPECT])
def test_assertion_for_another_recipient_is_refused_everywhere(client: FapiClient, path: str) -> None:
    base = client.site.server.base_url
    audiences = [base + path, base + TOKEN, base + "/", [base], [base, base], [], None, "https://other.example"]
    for audience in audiences:
        data = fields(assertion(client.site, aud=audience), token="x", grant_type="client_credentials")
        assert error_of(client.site.http.post(path, data=data)) == (401, "invalid_client"), audience


def test_assertion_of_one_endpoint_is_refused_at_another(client: FapiClient, browser: Browser) -> None:
    used = fields(assertion(client.site))
    assert client.site.http.post(REVOKE, data={**used, "token": "x"}).is_success
    headers = client.key.headers(client.site, nonce=client.nonce)
    answer = client.site.http.post(TOKEN, data={**used, **client.code(browser)}, headers=headers)
    assert error_of(answer) == (401, "invalid_client")


def is_authenticated(client: FapiClient, token: str) -> bool:
    return client.site.http.post(REVOKE, data=fields(token, token="unknown")).is_success


def test_algorithms_of_assertions(client: FapiClient) -> None:
    """RS256 is refused although the key could be used with it; a public key is no secret of HS256."""
    public = public_jwk(KEYS["RS256"].public_key(), "")["n"]
    for algorithm, key, kid, accepted in [
        ("PS256", rsa_key(), "key-RS256", True),
        ("ES256", KEYS["ES256"], "key-ES256", True),
        ("EdDSA", KEYS["EdDSA"], "key-EdDSA", True),
        ("RS256", rsa_key(), "key-RS256", False),
        ("PS384", rsa_key(), "key-RS256", False),
        ("PS256", rsa_key(), "key-ES256", False),
        ("HS256", public, "key-RS256", False),
    ]:
        token = assertion(client.site, algorithm, key=key, kid=kid)
        assert is_authenticated(client, token) == accepted, algorithm
    claims = pyjwt.decode(assertion(client.site), options={"verify_signature": False})
    unsigned = pyjwt.encode(claims, None, "none", headers={"kid": "key-ES256"})  # type: ignore[arg-type]
    for text in (unsigned, unsigned + "AA"):
        assert not is_authenticated(client, text)


@pytest.mark.parametrize(("algorithm", "accepted"), [("PS256", True), ("EdDSA", True), ("RS256", False)])
def test_algorithms_of_proofs(server: Server, browser: Browser, algorithm: str, accepted: bool) -> None:
    client = new_fapi_client(server)
    client.key = DpopKey(algorithm)
    verifier, challenge = pkce()
    code = query_of(client.follow(browser, client.push_without_proof(challenge)))["code"]
    answer = client.send(TOKEN, client.redemption(code, verifier))
    assert answer.is_success if accepted else error_of(answer) == (400, "invalid_dpop_proof")


def test_unsigned_and_symmetric_proofs_are_refused(client: FapiClient, browser: Browser) -> None:
    form = client.code(browser)
    claims = pyjwt.decode(client.key.proof(client.site, nonce=client.nonce), options={"verify_signature": False})
    headers = {"typ": "dpop+jwt", "jwk": client.key.jwk}
    for algorithm, key in (("none", ""), ("HS256", "0123456789abcdef0123456789abcdef")):
        proof = pyjwt.encode(claims, key, algorithm, headers=headers)
        assert error_of(send(client, TOKEN, form, {"DPoP": proof})) == (400, "invalid_dpop_proof")


def test_stolen_tokens_are_useless_without_the_keys(server: Server, client: FapiClient, browser: Browser) -> None:
    """A thief who has tokens, and even another client's keys, gets nothing."""
    tokens, thief = client.tokens(browser), new_fapi_client(server)
    thief.nonce = client.nonce
    assert thief.userinfo(tokens["access_token"]).status_code == 401
    assert client.site.userinfo(tokens["access_token"]).status_code == 401
    assert error_of(thief.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error_of(client.refresh(tokens["refresh_token"], DpopKey())) == (400, "invalid_grant")
    assert client.refresh(tokens["refresh_token"]).is_success  # nothing has ended the grant


def test_every_answer_to_the_browser_names_the_issuer(client: FapiClient, browser: Browser) -> None:
    """A client that talks to several issuers detects an answer of another one (mix-up)."""
    issuer = client.site.server.base_url
    assert query_of(client.follow(browser, client.push()))["iss"] == issuer
    assert query_of(client.follow(browser, client.push(prompt="none", max_age="0")))["iss"] == issuer
    form = client.follow(browser, client.push(response_mode="form_post"))
    assert f'name="iss" value="{issuer}"' in form.text
