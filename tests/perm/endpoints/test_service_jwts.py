"""Service JWTs at permission endpoints, which replace the device factor (§4.1)."""

from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from sso.core.keys import public_pem
from tests.kit.browser import query
from tests.kit.rsa_keys import rsa_key
from tests.perm.endpoints.authentication import HOUR, NOW, REFUSED, UNVERIFIED, bearer, forged, post
from tests.perm.endpoints.conftest import ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey, signer


def test_service_jwt_replaces_the_factor(studio: Studio, ann: ApiUser, key: ServiceKey, app: int) -> None:
    token = key.sign(studio.server, app)
    assert post(studio, bearer(ann.jwt, None, token))[0] == 200
    assert post(studio, bearer(ann.jwt, "wrong", token))[0] == 200


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_service_jwt_of_every_algorithm_is_accepted(studio: Studio, ann: ApiUser, algorithm: str) -> None:
    app = studio.application()
    key = ServiceKey(algorithm, rsa_key(2) if algorithm == "RS256" else None).trusted_by(studio, app)
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, app)))[0] == 200


def test_service_jwt_of_more_than_4096_characters_is_unauthorized(studio: Studio, ann: ApiUser) -> None:
    app = studio.application()
    key = ServiceKey().trusted_by(studio, app)
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, app, pad="x" * 2000)))[0] == 200
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, app, pad="x" * 3000)))[0] == 401


def test_service_jwt_with_a_large_rsa_key_is_verified(studio: Studio, ann: ApiUser) -> None:
    app = studio.application()
    key = ServiceKey("RS256", rsa_key(0, 4104)).trusted_by(studio, app)
    token = key.sign(studio.server, app)
    assert post(studio, bearer(ann.jwt, None, token))[0] == 200
    assert post(studio, bearer(ann.jwt, None, token[:-8] + "AAAAAAAA")) == REFUSED


def test_stored_application_key_beyond_the_limits_is_not_trusted(studio: Studio, ann: ApiUser) -> None:
    """An older version may have stored such a key."""
    app = studio.application()
    key = ServiceKey("RS256", rsa_key(1)).trusted_by(studio, app)
    public = key.private.public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    large = public_pem(rsa.RSAPublicNumbers((1 << 2046) - 1, public.public_numbers().n).public_key())
    query(studio.server, "UPDATE application_keys SET pem = $1 WHERE id = $2", large, key.kid)
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, app))) == REFUSED
    assert studio.client.get(f"/api/permissions/application/publicKeys/{app}").json()["keys"] == []


def test_key_file_is_trusted_for_its_own_application_only(studio: Studio, ann: ApiUser) -> None:
    app, other, key = studio.application(), studio.application(), ServiceKey()
    folder = studio.server.folder / "data" / "keys"
    folder.mkdir(exist_ok=True)
    (folder / f"{app}.pem").write_text(key.pem)
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, app)))[0] == 200
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, other))) == REFUSED
    (folder / f"{app}.pem").unlink()
    assert post(studio, bearer(ann.jwt, None, key.sign(studio.server, app))) == REFUSED


def test_replaced_application_key_is_no_longer_trusted(studio: Studio, ann: ApiUser) -> None:
    app = studio.application()
    old = ServiceKey().trusted_by(studio, app)
    new = ServiceKey().trusted_by(studio, app)
    assert post(studio, bearer(ann.jwt, None, old.sign(studio.server, app))) == REFUSED
    assert post(studio, bearer(ann.jwt, None, new.sign(studio.server, app)))[0] == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"typ": "user_token"},
        {"typ": None},
        {"typ": ["service_token"]},
        {"app_id": "10"},
        {"app_id": True},
        {"app_id": 2**31},
        {"app_id": None},
        {"aud": "https://elsewhere.example.com"},
        {"aud": None},
        {"exp": NOW - 10, "iat": NOW - 20},
        {"exp": None},
        {"exp": float(NOW + 60)},
        {"iat": None},
        {"iat": NOW + 2 * HOUR, "exp": NOW + 2 * HOUR + 60},
        {"iat": NOW - 10, "exp": NOW + 2 * HOUR},
        {"nbf": NOW + HOUR},
    ],
)
def test_service_jwt_with_wrong_claims_is_unauthorized(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int, claims: dict[str, Any]
) -> None:
    token = key.sign(studio.server, **{"app_id": app, **claims})
    assert post(studio, bearer(ann.jwt, None, token)) == REFUSED


@pytest.mark.parametrize(
    "kid", ["", "unknown", "../../secret.key", "/etc/passwd", "a' OR '1'='1", "\0", "\ud800", "x" * 200, 7, ["x"], None]
)
def test_service_jwt_with_an_unknown_key_id_is_unauthorized(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int, kid: object
) -> None:
    token = forged({"alg": "ES256", "kid": kid}, pyjwt.decode(key.sign(studio.server, app), options=UNVERIFIED))
    assert post(studio, bearer(ann.jwt, None, token)) == REFUSED


def test_service_jwt_signed_by_the_service_itself_is_unauthorized(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int
) -> None:
    claims = pyjwt.decode(key.sign(studio.server, app), options=UNVERIFIED)
    assert post(studio, bearer(ann.jwt, None, signer(studio.server).sign(claims))) == REFUSED


def test_service_jwt_is_valid_for_its_application_and_those_of_its_project(studio: Studio, ann: ApiUser) -> None:
    project = studio.project()
    app, sister, stranger = studio.application(project), studio.application(project), studio.application()
    token = ServiceKey().trusted_by(studio, app).sign(studio.server, app)
    for target, status in ((app, 200), (sister, 200), (stranger, 403), (1, 403)):
        body = {"action": "get", "application_id": target, "data": {}}
        assert post(studio, bearer(ann.jwt, None, token), "meta/data", **body)[0] == status
    root = bearer(studio.root.jwt, None, token)
    assert post(studio, root, "application", action="get", data={"application_id": sister})[0] == 200
    assert post(studio, root, "application", action="get", data={"application_id": stranger})[0] == 403


def test_save_with_a_service_jwt_can_be_tried_and_is_refused_by_assertions(studio: Studio, ann: ApiUser) -> None:
    app = studio.application()
    headers = bearer(ann.jwt, None, ServiceKey().trusted_by(studio, app).sign(studio.server, app))
    assertions = [f"{ann.login} may not kick"]
    studio.server.apply({"applications": [{"application_id": app, "name": "Asserted", "assertions": assertions}]})
    data = {"user_id": ann.user_id, "private_data": {"kick": {"value": True}}}
    save: dict[str, Any] = {"path": "meta/data", "action": "save", "application_id": app, "data": data}
    status, tried = post(studio, headers, **save, options={"dry_run": True})
    assert (status, tried["users"][0]["gained"]) == (200, ["private_data.kick"])
    status, refused = post(studio, headers, **save)
    assert (status, refused["failed_assertions"][0]["assertion"]) == (409, assertions[0])


def test_service_jwt_of_a_removed_application_is_unauthorized(studio: Studio, ann: ApiUser) -> None:
    app = studio.application()
    token = ServiceKey().trusted_by(studio, app).sign(studio.server, app)
    assert post(studio, bearer(ann.jwt, None, token))[0] == 200
    assert studio.root.call("application", action="delete", data={"application_id": app}).status == 200
    assert post(studio, bearer(ann.jwt, None, token)) == REFUSED


def test_service_jwt_and_access_key_of_a_removed_project_are_unauthorized(studio: Studio, ann: ApiUser) -> None:
    project = studio.project()
    app = studio.application(project)
    token = ServiceKey().trusted_by(studio, app).sign(studio.server, app)
    secret = studio.root.call("accessKey", action="save", application_id=app, data={}).data["hash"]
    body = {"action": "get", "application_id": app, "data": {"type": "roles", "user_id": ann.user_id}}
    assert post(studio, {"Authorization": f"Bearer {secret}"}, "meta/data", **body)[0] == 200
    assert studio.root.call("project", action="delete", data={"id": project}).status == 200
    assert post(studio, bearer(ann.jwt, None, token)) == REFUSED
    assert post(studio, {"Authorization": f"Bearer {secret}"}, "meta/data", **body) == REFUSED
