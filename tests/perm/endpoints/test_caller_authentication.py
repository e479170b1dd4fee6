"""Authentication at permission endpoints (§4.1, §5.3): a user JWT with a factor, or with a service JWT."""

import hashlib
import hmac
from typing import Any

import jwt as pyjwt
import pytest

from sso.core.keys import public_jwk, public_pem
from tests.kit.builders import PASSWORD
from tests.kit.rsa_keys import rsa_key
from tests.perm.endpoints.authentication import HOUR, NOW, REFUSED, UNVERIFIED, bearer, forged, post, refusal_reason
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey, ip_headers, signer, user_jwt


def test_unauthorized_response_names_the_missing_or_wrong_credential(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int
) -> None:
    missing_jwt = "invalid token: a user JWT is required (Authorization: Bearer <user JWT>)"
    assert refusal_reason(studio) == missing_jwt
    assert refusal_reason(studio, {"Factor": FACTOR}) == missing_jwt
    assert refusal_reason(studio, {"Authorization": "Bearer", "Factor": FACTOR}) == missing_jwt
    scheme = 'invalid token: Authorization must be "Bearer <user JWT>"'
    assert refusal_reason(studio, {"Authorization": ann.jwt, "Factor": FACTOR}) == scheme
    assert refusal_reason(studio, {"Authorization": f"JWT {ann.jwt}", "Factor": FACTOR}) == scheme
    assert refusal_reason(studio, bearer(ann.jwt, None)) == "invalid token: the header Factor is required"
    wrong = "invalid token: Factor is not the one that the JWT was issued for"
    assert refusal_reason(studio, bearer(ann.jwt, "another")) == wrong
    expired = user_jwt(studio.server, ann.user_id, iat=NOW - 120, exp=NOW - 60)
    assert refusal_reason(studio, bearer(expired)) == "invalid token: the JWT has expired"
    service = key.sign(studio.server, app)
    assert refusal_reason(studio, bearer(ann.jwt, None, service), "project", action="get", data={"id": "x"}) == (
        "invalid token: the header Factor is required, and no other credential replaces it for this request"
    )
    assert refusal_reason(studio, bearer(ann.jwt, None, "a.b.c")) == "invalid token: the service JWT is not valid"
    for token in (f"{ann.jwt[:-8]}AAAAAAAA", "a.b.c", user_jwt(studio.server, "999999999")):
        assert refusal_reason(studio, bearer(token)) == "invalid token"
    # The response reveals nothing about a token that this service has not signed.
    forged_end = forged({"alg": "ES256", "kid": signer(studio.server).kid}, {"exp": 1, "iat": 0, "typ": "user_token"})
    assert refusal_reason(studio, bearer(forged_end)) == "invalid token"


@pytest.fixture(scope="module")
def access_key(studio: Studio, app: int) -> dict[str, Any]:
    key: dict[str, Any] = studio.root.call("accessKey", action="save", application_id=app, data={}).data
    return key


def test_user_jwt_and_factor_in_headers_authenticate(studio: Studio, ann: ApiUser) -> None:
    assert post(studio, bearer(ann.jwt)) == (200, {"status": "OK", "projects": 0})


def test_deprecated_body_fields_authenticate(studio: Studio, ann: ApiUser, key: ServiceKey, app: int) -> None:
    assert post(studio, jwt=ann.jwt, factor=FACTOR)[0] == 200
    assert post(studio, jwt=ann.jwt, service_jwt=key.sign(studio.server, app))[0] == 200


def test_headers_take_precedence_over_body_fields(studio: Studio, ann: ApiUser, key: ServiceKey, app: int) -> None:
    assert post(studio, bearer(ann.jwt), jwt="a.b.c", factor="wrong")[0] == 200
    assert post(studio, bearer("a.b.c"), jwt=ann.jwt) == REFUSED
    assert post(studio, bearer(ann.jwt, "wrong"), factor=FACTOR) == REFUSED
    assert post(studio, bearer(ann.jwt, None, "a.b.c"), service_jwt=key.sign(studio.server, app)) == REFUSED


@pytest.mark.parametrize("factor", [None, "", "wrong", FACTOR.upper(), f"{FACTOR} x", "None"])
def test_missing_or_wrong_factor_is_unauthorized(studio: Studio, ann: ApiUser, factor: str | None) -> None:
    assert post(studio, bearer(ann.jwt, factor)) == REFUSED


def test_request_without_a_user_jwt_is_unauthorized(studio: Studio, key: ServiceKey, app: int) -> None:
    assert post(studio) == REFUSED
    assert post(studio, {"Factor": FACTOR}) == REFUSED
    assert post(studio, {"Service-Jwt": key.sign(studio.server, app)}) == REFUSED


@pytest.mark.parametrize("value", [None, 1, ["x"], {}])
@pytest.mark.parametrize("field", ["jwt", "factor", "service_jwt"])
def test_credential_that_is_not_a_string_is_ignored(studio: Studio, ann: ApiUser, field: str, value: object) -> None:
    body: dict[str, Any] = {"jwt": ann.jwt, "factor": FACTOR, "service_jwt": ""} | {field: value}
    if field == "service_jwt":
        del body["factor"]
    assert post(studio, None, **body) == REFUSED


@pytest.mark.parametrize("algorithm", ["none", "None", "nOnE", "", "HS256", "HS384", "HS512", "RS384", None])
def test_algorithm_in_the_token_header_is_not_trusted(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int, algorithm: str | None
) -> None:
    server = studio.server
    user_claims = pyjwt.decode(ann.jwt, options=UNVERIFIED)
    service_claims = pyjwt.decode(key.sign(server, app), options=UNVERIFIED)
    header = {"alg": algorithm, "typ": "JWT"}
    for signature in (b"", b"x"):
        user = forged(header | {"kid": signer(server).kid}, user_claims, signature)
        service = forged(header | {"kid": key.kid}, service_claims, signature)
        assert post(studio, bearer(user)) == REFUSED
        assert post(studio, bearer(ann.jwt, None, service)) == REFUSED


def test_public_key_is_not_accepted_as_hmac_secret(studio: Studio, ann: ApiUser, key: ServiceKey, app: int) -> None:
    server = studio.server
    own_pem = studio.client.get(f"/api/permissions/application/publicKey/{signer(server).kid}").json()["key"]["data"]
    claims = pyjwt.decode(ann.jwt, options=UNVERIFIED)
    for secret in (own_pem, own_pem.strip(), ""):
        unsigned = forged({"alg": "HS256", "kid": signer(server).kid}, claims).rpartition(".")[0]
        signature = hmac.new(secret.encode(), unsigned.encode(), hashlib.sha256).digest()
        assert post(studio, bearer(forged({"alg": "HS256", "kid": signer(server).kid}, claims, signature))) == REFUSED


def test_key_in_the_token_header_is_not_trusted(studio: Studio, ann: ApiUser) -> None:
    mine = rsa_key()
    claims = pyjwt.decode(ann.jwt, options=UNVERIFIED)
    kid = signer(studio.server).kid
    for extra in (
        {"jwk": public_jwk(mine.public_key(), kid)},
        {"jku": "http://169.254.169.254/keys"},
        {"x5u": "http://169.254.169.254/keys"},
        {"x5c": [public_pem(mine.public_key())]},
    ):
        token = pyjwt.encode(claims, mine, algorithm="RS256", headers={"kid": kid, **extra})
        assert post(studio, bearer(token)) == REFUSED


def test_user_jwt_signed_by_an_application_is_unauthorized(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int
) -> None:
    claims = pyjwt.decode(ann.jwt, options=UNVERIFIED)
    token = pyjwt.encode(claims, key.private, algorithm="ES256", headers={"kid": key.kid})
    assert post(studio, bearer(token)) == REFUSED


WRONG_CLAIMS: tuple[dict[str, Any], ...] = (
    {"typ": "id_token"},
    {"typ": "refresh_token"},
    {"typ": "service_token"},
    {"typ": "USER_TOKEN"},
    {"typ": None},
    {"typ": ["user_token"]},
    {"iss": "https://elsewhere.example.com"},
    {"iss": None},
    {"sub": "999999999"},
    {"sub": "012"},
    {"sub": " 12"},
    {"exp": NOW - 60},
    {"exp": None},
    {"exp": "9999999999"},
    {"exp": 1e400},
    {"exp": -1},
    {"iat": NOW + HOUR, "exp": NOW + 2 * HOUR},
    {"nbf": NOW + HOUR},
    {"fac": None},
)


def test_user_jwt_with_wrong_claims_is_unauthorized(studio: Studio, ann: ApiUser) -> None:
    assert post(studio, bearer(user_jwt(studio.server, ann.user_id)))[0] == 200
    for claims in WRONG_CLAIMS:
        assert post(studio, bearer(user_jwt(studio.server, ann.user_id, **claims))) == REFUSED, claims


def test_issuer_must_match_exactly(studio: Studio, ann: ApiUser) -> None:
    base = studio.server.base_url
    for issuer in (f"{base}/", base[:-1], f" {base}"):
        assert post(studio, bearer(user_jwt(studio.server, ann.user_id, iss=issuer))) == REFUSED


@pytest.mark.parametrize("token", ["x", "a.b", "a.b.c", "a.b.c.d", "..", "é.é.é", "A" * 7000 + ".e.e", "+/.+/.=="])
def test_malformed_jwt_is_unauthorized(studio: Studio, ann: ApiUser, token: str) -> None:
    latin1 = token.encode().decode("latin-1")
    assert post(studio, {"Authorization": f"Bearer {latin1}".encode("latin-1"), "Factor": FACTOR}) == REFUSED  # type: ignore[dict-item]
    assert post(studio, None, jwt=token, factor=FACTOR) == REFUSED


def test_token_of_another_kind_is_unauthorized(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int, access_key: dict[str, Any]
) -> None:
    service = key.sign(studio.server, app)
    login = {"login": ann.login, "password": PASSWORD}
    session = studio.client.post("/proxy/api/login", json=login).json()
    for token in (service, access_key["hash"], access_key["id"], session["token"], session["stoken"]):
        assert post(studio, bearer(token)) == REFUSED
        assert post(studio, bearer(token, None, service)) == REFUSED
    for token in (ann.jwt, access_key["hash"], session["token"]):
        assert post(studio, bearer(ann.jwt, None, token)) == REFUSED
    assert post(studio, bearer(service, None, service)) == REFUSED


def test_access_key_is_accepted_by_meta_data_only(
    studio: Studio, ann: ApiUser, app: int, access_key: dict[str, Any]
) -> None:
    for path in ("user/info", "application", "accessKey", "roles", "meta/schema", "project", "group", "audit"):
        body = {"action": "get", "application_id": app, "data": {"application_id": app, "type": "roles"}}
        headers = {"Authorization": f"Bearer {access_key['hash']}", "Factor": FACTOR}
        assert post(studio, headers, path, jwt=ann.jwt, **body) == REFUSED


def test_disabled_user_is_unauthorized(studio: Studio) -> None:
    bob = studio.user()
    studio.server.sso("user", "disable", bob.user_id)
    assert post(studio, bearer(bob.jwt)) == REFUSED


def test_jwt_with_fixed_addresses_is_valid_from_these_addresses_only(studio: Studio, ann: ApiUser) -> None:
    assert post(studio, bearer(user_jwt(studio.server, ann.user_id, ips=["127.0.0.0/8"])))[0] == 200
    assert post(studio, bearer(user_jwt(studio.server, ann.user_id, ips=["10.0.0.0/8"]))) == REFUSED


def test_fixed_addresses_of_a_jwt_are_compared_with_the_signed_address(
    studio: Studio, ann: ApiUser, app: int, access_key: dict[str, Any]
) -> None:
    token = user_jwt(studio.server, ann.user_id, ips=["10.0.0.0/8"])
    body = {"action": "get", "application_id": app, "data": {}}
    assert post(studio, bearer(token) | ip_headers(access_key, "10.1.1.1"), "meta/data", **body)[0] == 200
    assert post(studio, bearer(token) | ip_headers(access_key, "11.1.1.1"), "meta/data", **body) == REFUSED
