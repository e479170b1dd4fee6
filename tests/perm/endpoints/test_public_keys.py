"""Public keys of applications: published keys, and look-ups by id (§2.3)."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from sso.audit.trail import AuditActor
from sso.core.keys import public_pem
from sso.perm.stores.application_keys import add_custom_key, delete_custom_key
from sso.services import Services
from tests.kit.rsa_keys import rsa_key
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey


@pytest.fixture(scope="module")
def root(studio: Studio) -> ApiUser:
    return studio.root


def save(user: ApiUser, **data: Any) -> ApiResponse:
    return user.call("application", action="save", data=data)


def get(user: ApiUser, application_id: Any, **options: Any) -> ApiResponse:
    return user.call("application", action="get", data={"application_id": application_id}, options=options)


def test_public_keys_from_file_and_service_meta_are_published(studio: Studio) -> None:
    app, other = studio.application(), studio.application()
    in_file, in_meta = ServiceKey("RS256", rsa_key(1)), ServiceKey("EdDSA").trusted_by(studio, app)
    folder = studio.server.folder / "data" / "keys"
    folder.mkdir(exist_ok=True)
    (folder / f"{app}.pem").write_text(in_file.pem)
    url = "/api/permissions/application"
    expected = [{"id": key.kid, "data": key.pem} for key in (in_file, in_meta)]
    response = studio.client.get(f"{url}/publicKeys/{app}")
    assert response.json() == {"status": "OK", "keys": expected}
    for key in expected:
        assert studio.client.get(f"{url}/publicKey/{key['id']}").json() == {"status": "OK", "key": key}
    assert studio.client.get(f"{url}/publicKeys/{other}").json() == {"status": "OK", "keys": []}
    assert studio.root.call("application", action="delete", data={"application_id": app}).status == 200
    assert studio.client.get(f"{url}/publicKeys/{app}").json()["keys"] == []
    for key in expected:
        assert studio.client.get(f"{url}/publicKey/{key['id']}").status_code == 404


def test_custom_key_is_published_and_trusted_until_it_is_removed(studio: Studio) -> None:
    app, key = studio.application(), ServiceKey("ES256")
    token = {"Service-Jwt": key.sign(studio.server, app), "Factor": ""}
    url = f"/api/permissions/application/publicKeys/{app}"

    def change(work: Callable[[Services], Awaitable[object]]) -> None:
        studio.server.run_with_services(work)

    actor, application = AuditActor(operator="test"), {"application_id": app, "project_id": None}
    assert studio.root.call("user/info", token).status == 401
    change(lambda s: s.database.transaction(add_custom_key, actor, application, key.pem))
    assert studio.client.get(url).json()["keys"] == [{"id": key.kid, "data": key.pem}]
    assert studio.root.call("user/info", token).status == 200
    change(lambda s: s.database.transaction(delete_custom_key, actor, application, key.kid))
    assert studio.client.get(url).json()["keys"] == []
    assert studio.root.call("user/info", token).status == 401


def test_unusable_public_key_is_stored_but_not_published(studio: Studio, root: ApiUser) -> None:
    app = studio.application()
    for text in ("my key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", WEAK_KEY, LARGE_EXPONENT_KEY):
        assert save(root, application_id=app, service_meta={"public_key": text}).status == 200
        assert get(root, app, full=True).data["service_meta"]["public_key"] == text
        assert studio.client.get(f"/api/permissions/application/publicKeys/{app}").json()["keys"] == []


LARGE_EXPONENT_KEY = public_pem(rsa.RSAPublicNumbers((1 << 3069) - 1, 1 << 3071 | 1).public_key())
WEAK_KEY = """-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu
KUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==
-----END PUBLIC KEY-----
"""


@pytest.mark.parametrize("identifier", ["0", "..%2f1", "1%00", "99999999999", "1.pem", "１"])
def test_public_keys_of_an_invalid_application_id_are_not_found(studio: Studio, identifier: str) -> None:
    response = studio.client.get(f"/api/permissions/application/publicKeys/{identifier}")
    assert (response.status_code, response.json()["status"]) == (404, "ERROR")


@pytest.mark.parametrize(
    "identifier", ["x", "..%2f..%2fsecret.key", "%00", "secret.key", "1", "a' OR '1'='1", "%ED%A0%80"]
)
def test_unknown_public_key_is_not_found(studio: Studio, identifier: str) -> None:
    response = studio.client.get(f"/api/permissions/application/publicKey/{identifier}")
    assert (response.status_code, response.json()["status"]) == (404, "ERROR")


def test_signing_keys_of_the_service_are_published(studio: Studio) -> None:
    keys = studio.client.get("/api/permissions/keys").json()["keys"]
    assert keys == studio.client.get("/proxy/oauth/keys").json()["keys"]
    for key in keys:
        assert set(key) <= {"kty", "n", "e", "kid", "alg", "use", "crv", "x", "y"}
        published = studio.client.get(f"/api/permissions/application/publicKey/{key['kid']}").json()["key"]
        assert published["id"] == key["kid"]
        assert published["data"].startswith("-----BEGIN PUBLIC KEY-----")


@pytest.mark.timeout(60)
def test_fifo_among_the_key_files_does_not_block_the_lookup_of_a_key(studio: Studio) -> None:
    app = studio.application()
    folder = studio.server.folder / "data" / "keys"
    folder.mkdir(exist_ok=True)
    fifo = folder / f"{app}.pem"
    os.mkfifo(fifo)
    try:
        for path in ("publicKey/unknown", f"publicKey/{'x' * 43}"):
            response = studio.client.get(f"/api/permissions/application/{path}")
            assert response.status_code == 404
        response = studio.client.get(f"/api/permissions/application/publicKeys/{app}")
        assert response.json() == {"status": "OK", "keys": []}
    finally:
        fifo.unlink()


def test_public_keys_of_an_unknown_application_are_not_found(studio: Studio) -> None:
    for wrong in (2**31 - 1, "x", "010", 2**31):
        response = studio.client.get(f"/api/permissions/application/publicKeys/{wrong}")
        assert (response.status_code, response.json()["status"]) == (404, "ERROR")
