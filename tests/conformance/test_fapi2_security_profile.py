"""The modules of the plan for the FAPI 2.0 Security Profile (final), with OpenID Connect, private_key_jwt and DPoP.

They are named after the classes of the foundation's suite, without ``FAPI2SPFinal``. Most of them change one thing of a
correct request.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from sso.core.algorithms import FAPI_ALGORITHMS
from tests.conformance.plans import Module, Plan
from tests.conformance.result_table import PAGE, table
from tests.kit.browser import query
from tests.kit.client_assertions import assertion, fields
from tests.kit.dpop import DpopKey
from tests.kit.fapi import FapiClient, new_fapi_client
from tests.kit.oauth import PAR, TOKEN, USERINFO, Browser, error_of, pkce, query_of
from tests.kit.server import Server

REDIRECT_WITH_QUERY = "https://rp.example.com/callback?dummy1=lorem&dummy2=ipsum"


@dataclass
class Run:
    server: Server
    client: FapiClient
    other: FapiClient
    browser: Browser


Check = Callable[[Run], None]


@dataclass(frozen=True)
class Accepted:
    """A pushed request with these changes leads to tokens."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    signed: Mapping[str, Any] = field(default_factory=dict)  # changes of the assertion

    def __call__(self, run: Run) -> None:
        verifier, challenge = pkce()
        pushed = run.client.push(challenge, signed=later(self.signed), **self.changes)
        answer = query_of(run.client.follow(run.browser, pushed))
        assert answer["iss"] == run.server.base_url
        assert answer.get("state") == self.changes.get("state", "s-1")
        redeem(run, answer["code"], verifier, nonce_claim=self.changes.get("nonce", "n-1"))


@dataclass(frozen=True)
class RefusedPush:
    """A pushed request with these changes is refused."""

    error: tuple[int, str]
    changes: Mapping[str, Any] = field(default_factory=dict)
    signed: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run) -> None:
        assert error_of(run.client.push(signed=later(placed(self.signed, run)), **self.changes)) == self.error


@dataclass(frozen=True)
class RefusedTokens:
    """A token request with these changes is refused, and a correct one afterwards is not."""

    error: tuple[int, str]
    form: Mapping[str, Any] = field(default_factory=dict)
    signed: Mapping[str, Any] = field(default_factory=dict)
    proof: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run) -> None:
        correct = run.client.code(run.browser)
        form = {name: value for name, value in {**correct, **self.form}.items() if value is not None}
        refused = run.client.send(TOKEN, form, None, later(placed(self.signed, run)), **later(self.proof))
        assert error_of(refused) == self.error
        assert run.client.send(TOKEN, correct).status_code == 200


def later(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces functions by their results: numbers of seconds are relative to the moment of the request."""
    return {name: value() if callable(value) else value for name, value in changes.items()}


def placed(changes: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Inserts the address of the service."""
    base = run.server.base_url

    def insert(value: Any) -> Any:
        return [insert(item) for item in value] if isinstance(value, list) else str(value).replace("{base}", base)

    return {name: insert(value) if name == "aud" else value for name, value in changes.items()}


def seconds(difference: int) -> Callable[[], int]:
    return lambda: int(time.time()) + difference


def redeem(run: Run, code: str, verifier: str, nonce_claim: str | None = "n-1", **proof: Any) -> dict[str, Any]:
    answer = run.client.send(TOKEN, run.client.redemption(code, verifier), **proof)
    assert answer.status_code == 200, answer.text
    tokens: dict[str, Any] = answer.json()
    assert tokens["token_type"] == "DPoP"
    assert pyjwt.get_unverified_header(tokens["id_token"])["alg"] in FAPI_ALGORITHMS
    claims = run.client.site.claims(tokens["id_token"])
    assert claims.get("nonce") == nonce_claim
    assert run.client.userinfo(tokens["access_token"]).json()["sub"] == claims["sub"]
    return tokens


def discovery(run: Run) -> None:
    document = run.client.site.http.get("/.well-known/openid-configuration").json()
    assert document["issuer"] == run.server.base_url
    assert document["pushed_authorization_request_endpoint"] == run.server.base_url + PAR
    assert document["authorization_response_iss_parameter_supported"] is True
    assert document["claims_parameter_supported"] is True
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert "private_key_jwt" in document["token_endpoint_auth_methods_supported"]
    for name in ("token_endpoint_auth", "dpop"):
        assert set(FAPI_ALGORITHMS) <= set(document[f"{name}_signing_alg_values_supported"])
    assert "ES256" in document["id_token_signing_alg_values_supported"]


def happy_flow(run: Run) -> None:
    Accepted()(run)
    Accepted()(Run(run.server, run.other, run.client, run.browser))


def user_rejects(run: Run) -> None:
    asked = run.client.follow(run.browser, run.client.push(prompt="consent"))
    page = run.browser.http.get(asked.headers["Location"])
    answer = query_of(run.browser.submit(page, {"decision": "deny"}))
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "s-1", run.server.base_url)


def claims_parameter(run: Run) -> None:
    claims = {"id_token": {"email": {"essential": True}}, "userinfo": {"nickname": None}}
    tokens = run.client.tokens(run.browser, claims=json.dumps(claims))
    assert run.client.site.claims(tokens["id_token"])["email"] == run.browser.login
    assert run.client.userinfo(tokens["access_token"]).json()["nickname"] == "Ann"


def header_case(run: Run) -> None:
    token = run.client.tokens(run.browser)["access_token"]
    for scheme in ("DPoP", "dpop", "DPOP"):
        headers = run.client.key.at_userinfo(run.client.site, token, nonce=run.client.nonce)
        answer = run.client.site.http.get(USERINFO, headers={**headers, "Authorization": f"{scheme} {token}"})
        assert answer.status_code == 200


def accepted_proof(**changes: Any) -> Check:
    def check(run: Run) -> None:
        form = run.client.code(run.browser)
        assert run.client.send(TOKEN, form, **later(changes)).status_code == 200

    return check


def bound_code(at_par: str, *, same_key: bool) -> Check:
    """The code is bound by a proof at the PAR endpoint, or by dpop_jkt."""

    def check(run: Run) -> None:
        verifier, challenge = pkce()
        if at_par == "proof":
            pushed = run.client.push(challenge)
        else:
            pushed = run.client.push_without_proof(challenge, dpop_jkt=run.client.key.jkt)
        code = query_of(run.client.follow(run.browser, pushed))["code"]
        form = run.client.redemption(code, verifier)
        answer = run.client.send(TOKEN, form, run.client.key if same_key else DpopKey())
        assert answer.status_code == 200 if same_key else error_of(answer) == (400, "invalid_grant")

    return check


def outside_is_ignored(name: str, pushed: str | None) -> Check:
    def check(run: Run) -> None:
        verifier, challenge = pkce()
        inside: dict[str, Any] = {name: pushed}
        answer = run.client.push(challenge, **inside)
        redirect = query_of(run.client.follow(run.browser, answer, **{name: "outside"}))
        assert redirect.get("state") == (pushed if name == "state" else "s-1")
        redeem(run, redirect["code"], verifier, nonce_claim=pushed if name == "nonce" else "n-1")

    return check


def without_par(run: Run) -> None:
    pair = {"code_challenge": pkce()[1], "code_challenge_method": "S256"}
    answer = query_of(run.browser.authorize(run.client.site, **pair))
    assert (answer["error"], answer["iss"]) == ("invalid_request", run.server.base_url)


def token_request_without(*names: str) -> Check:
    def check(run: Run) -> None:
        form = {**fields(assertion(run.client.site)), **run.client.code(run.browser)}
        for name in names:
            del form[name]
        headers = run.client.key.headers(run.client.site, nonce=run.client.nonce)
        assert error_of(run.client.site.http.post(TOKEN, data=form, headers=headers)) == (401, "invalid_client")

    return check


def holder_of_key(run: Run) -> None:
    data = {**fields(assertion(run.client.site)), **run.client.code(run.browser)}
    assert error_of(run.client.site.http.post(TOKEN, data=data)) == (400, "invalid_dpop_proof")
    token = run.client.tokens(run.browser)["access_token"]
    assert run.client.site.userinfo(token).status_code == 401


def other_client_id(run: Run) -> None:
    """The id of the second client, with an assertion that the first client's key has signed."""
    form, other = run.client.code(run.browser), run.other.site.client_id
    signed = {"iss": other, "sub": other, "key": DpopKey().key}
    assert error_of(run.client.send(TOKEN, {**form, "client_id": other}, None, signed)) == (401, "invalid_client")


def code_of_other_client(run: Run) -> None:
    assert error_of(run.other.send(TOKEN, run.client.code(run.browser))) == (400, "invalid_grant")


def reused_code(run: Run) -> None:
    form = run.client.code(run.browser)
    token = run.client.send(TOKEN, form).json()["access_token"]
    assert error_of(run.client.send(TOKEN, form)) == (400, "invalid_grant")
    assert run.client.userinfo(token).status_code == 401


def expired_code(run: Run) -> None:
    form = run.client.code(run.browser)
    shift = "UPDATE oauth_codes SET expires = expires - interval '61 s' WHERE client_id = $1 RETURNING 1"
    assert query(run.server, shift, run.client.site.client_id)
    assert error_of(run.client.send(TOKEN, form)) == (400, "invalid_grant")


def dpop_negative(run: Run) -> None:
    for proof in (
        {"htm": "GET"}, {"htu": "https://other.example/token"}, {"htu": None}, {"htm": None}, {"jti": None},
        {"iat": None}, {"iat": seconds(-3600)}, {"iat": seconds(3600)}, {"header": {"jwk": DpopKey().jwk}},
        {"header": {"typ": "JWT"}},
    ):  # fmt: skip
        RefusedTokens((400, "invalid_dpop_proof"), proof=proof)(run)


def refresh(run: Run) -> None:
    token = run.client.tokens(run.browser)["refresh_token"]
    for _ in range(2):
        answer = run.client.refresh(token)
        assert answer.status_code == 200, answer.text
        assert answer.json().get("refresh_token", token) == token
    form = {"grant_type": "refresh_token", "refresh_token": token, **fields(assertion(run.client.site))}
    assert error_of(run.client.site.http.post(TOKEN, data=form)) == (400, "invalid_dpop_proof")
    assert error_of(run.client.refresh(token, DpopKey())) == (400, "invalid_grant")
    assert run.other.refresh(token).json()["error"] in ("invalid_grant", "invalid_client")


def request_uri_before_the_sign_in(run: Run) -> None:
    """The page that the request URI leads to can be opened again, the request URI cannot."""
    pushed = run.client.push(prompt="login")
    page = run.client.follow(run.browser, pushed).headers["Location"]
    assert [run.browser.http.get(page).status_code for _ in range(2)] == [200, 200]
    assert run.client.follow(run.browser, pushed).status_code == 400


def reused_request_uri(run: Run) -> None:
    pushed = run.client.push()
    assert "code" in query_of(run.client.follow(run.browser, pushed))
    again = run.client.follow(run.browser, pushed)
    assert (again.status_code, "Location" in again.headers) == (400, False)


def expired_request_uri(run: Run) -> None:
    pushed = run.client.push()
    shift = "UPDATE oauth_pushed_requests SET expires = expires - interval '91 s' WHERE client_id = $1 RETURNING 1"
    assert query(run.server, shift, run.client.site.client_id)
    assert run.client.follow(run.browser, pushed).status_code == 400


def request_uri_of_other_client(run: Run) -> None:
    assert run.other.follow(run.browser, run.client.push()).status_code == 400


def wrong_method(run: Run) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer: httpx.Response = run.client.site.http.request(method, PAR)
        assert answer.status_code == 405


INVALID_REQUEST, INVALID_CLIENT = (400, "invalid_request"), (401, "invalid_client")
UNREGISTERED = RefusedPush(INVALID_REQUEST, {"redirect_uri": "https://game.example.com/cb/unregistered"})
WITHOUT_REDIRECT_URI = RefusedPush(INVALID_REQUEST, {"redirect_uri": None})
MODULES: Mapping[str, Check] = {
    "DiscoveryEndpointVerification": discovery,
    "HappyFlow": happy_flow,
    "UserRejectsAuthentication": user_rejects,
    "EnsureAuthorizationRequestWithoutStateSuccess": Accepted({"state": None}),
    "EnsureAuthorizationRequestWithoutNonceSuccess": Accepted({"nonce": None}),
    "EnsureAuthorizationRequestWith64CharNonceSuccess": Accepted({"nonce": "n" * 64}),
    "EnsureOtherScopeOrderSucceeds": Accepted({"scope": "offline_access profile openid"}),
    "TestClaimsParameterIdentityClaims": claims_parameter,
    "AccessTokenTypeHeaderCaseSensitivity": header_case,
    "CheckDpopProofNbfExp": accepted_proof(nbf=seconds(-30), exp=seconds(300)),
    "EnsureDpopProofWithIat10SecondsBeforeSucceeds": accepted_proof(iat=seconds(-10)),
    "EnsureDpopProofWithIat10SecondsAfterSucceeds": accepted_proof(iat=seconds(10)),
    "EnsureMismatchedDpopJktFails": RefusedPush((400, "invalid_dpop_proof"), {"dpop_jkt": "A" * 43}),
    "EnsureTokenEndpointFailsWithMismatchedDpopProofJkt": bound_code("proof", same_key=False),
    "EnsureTokenEndpointFailsWithMismatchedDpopJkt": bound_code("dpop_jkt", same_key=False),
    "EnsureDpopProofAtParEndpointBindingSuccess": bound_code("proof", same_key=True),
    "EnsureDpopAuthCodeBindingSuccess": bound_code("dpop_jkt", same_key=True),
    "EnsureDifferentNonceInsideAndOutsideRequestObject": outside_is_ignored("nonce", "inside"),
    "EnsureDifferentStateInsideAndOutsideRequestObject": outside_is_ignored("state", "inside"),
    "EnsureAuthorizationRequestWithLongNonce": Accepted({"nonce": "n" * 384}),
    "EnsureAuthorizationRequestWithLongState": Accepted({"state": "s" * 384}),
    "StateOnlyOutsideRequestObjectNotUsed": outside_is_ignored("state", None),
    "EnsureRequestObjectWithoutRedirectUriFails": WITHOUT_REDIRECT_URI,
    "EnsureRegisteredRedirectUri": UNREGISTERED,
    "TolerateUnregisteredRedirectUri": UNREGISTERED,
    "EnsureUnsignedAuthorizationRequestWithoutUsingParFails": without_par,
    "EnsureRedirectUriInAuthorizationRequest": WITHOUT_REDIRECT_URI,
    "EnsureResponseTypeCodeIdTokenFails": RefusedPush(
        (400, "unsupported_response_type"), {"response_type": "code id_token"}
    ),
    "EnsureResponseTypeTokenFails": RefusedPush((400, "unsupported_response_type"), {"response_type": "token"}),
    "EnsureClientIdInTokenEndpoint": other_client_id,
    "EnsureHolderOfKeyRequired": holder_of_key,
    "EnsureAuthorizationCodeIsBoundToClient": code_of_other_client,
    "AttemptReuseAuthorizationCodeAfterOneSecond": reused_code,
    "AttemptToUseExpiredAuthCode": expired_code,
    "EnsureSignedClientAssertionWithRS256Fails": RefusedTokens(INVALID_CLIENT, signed={"algorithm": "RS256"}),
    "EnsureClientAssertionInTokenEndpoint": token_request_without("client_assertion", "client_assertion_type"),
    "EnsureClientAssertionWithExpIs5MinutesInPastFails": RefusedTokens(INVALID_CLIENT, signed={"exp": seconds(-300)}),
    "EnsureClientAssertionWithWrongAudFails": RefusedTokens(INVALID_CLIENT, signed={"aud": "https://other.example"}),
    "EnsureClientAssertionWithNoSubFails": RefusedTokens(INVALID_CLIENT, signed={"sub": None}),
    "DpopNegativeTests": dpop_negative,
    "RefreshToken": refresh,
    "PAREnsureServerAcceptsReusedRequestUriBeforeAuthenticationCompletion": request_uri_before_the_sign_in,
    "PARAttemptReuseRequestUri": reused_request_uri,
    "PARAttemptToUseExpiredRequestUri": expired_request_uri,
    "PAREnsureJWTClientAssertionWithIatNbf8SecondsInTheFutureIsAccepted": Accepted(
        signed={"iat": seconds(8), "nbf": seconds(8)}
    ),
    "PAREnsureJWTClientAssertionWithIatNbfOver60SecondsInTheFutureFails": RefusedPush(
        INVALID_CLIENT, signed={"iat": seconds(300), "nbf": seconds(300), "exp": seconds(600)}
    ),
    "PAREnsureRequestUriIsBoundToClient": request_uri_of_other_client,
    "PARRejectRequestUriInParAuthorizationFormParams": RefusedPush(INVALID_REQUEST, {"request_uri": "urn:example:1"}),
    "PARRejectInvalidHttpVerb": wrong_method,
    "PAREnsurePKCERequired": RefusedPush(INVALID_REQUEST, {"code_challenge": None, "code_challenge_method": None}),
    "PAREnsurePKCECodeVerifierRequired": RefusedTokens((400, "invalid_grant"), {"code_verifier": None}),
    "PARIncorrectPKCECodeVerifierRejected": RefusedTokens((400, "invalid_grant"), {"code_verifier": "v" * 43}),
    "PAREnsurePlainPKCERejected": RefusedPush(INVALID_REQUEST, {"code_challenge_method": "plain"}),
    "ParWithoutDuplicateParameters": Accepted(),
    "PAREndpointAsArrayAudienceFails": RefusedPush(INVALID_CLIENT, signed={"aud": ["{base}"]}),
    "PAREndpointAsAudienceFails": RefusedPush(INVALID_CLIENT, signed={"aud": "{base}/proxy/oauth/par"}),
    "PARTokenEndpointAsAudienceFails": RefusedPush(INVALID_CLIENT, signed={"aud": "{base}/proxy/oauth/token"}),
}
REMARKS = {
    "EnsureRegisteredRedirectUri": "refused when it is pushed",
    "TolerateUnregisteredRedirectUri": "refused, which the suite accepts",
    "RefreshToken": "a request without a proof gets ``invalid_dpop_proof`` (RFC 9449)",
}
WARNINGS = {
    "PAREnsureServerAcceptsReusedRequestUriBeforeAuthenticationCompletion": "the page of the sign-in can be opened "
    "again, the request URI works once; a recommendation"
}
PLAN = Plan(
    "fapi2-security-profile-final-test-plan",
    "FAPI 2.0 Security Profile",
    tuple(
        Module(name, REMARKS.get(name, WARNINGS.get(name, "")), other_result="warning" if name in WARNINGS else "")
        for name in MODULES
    ),
)


@pytest.fixture(scope="module")
def run(server: Server, signed_in: Browser) -> Run:
    other = new_fapi_client(server, redirect_uri=REDIRECT_WITH_QUERY, redirect_uris=[REDIRECT_WITH_QUERY])
    return Run(server, new_fapi_client(server), other, signed_in)


@pytest.mark.parametrize("module", MODULES)
def test_module(run: Run, module: str) -> None:
    MODULES[module](run)


def test_documentation_has_the_results_of_the_plan() -> None:
    assert table(PLAN) in PAGE.read_text(), f"docs/conformance.rst must contain:\n{table(PLAN)}"
