"""Requests with an expired user JWT or without one, which only meta/data accepts (§4.5, §4.8)."""

from typing import Any

import pytest

from tests.perm.endpoints.conftest import FACTOR, ApiResponse, Studio
from tests.perm.endpoints.tokens import ServiceKey, expired_jwt, user_jwt


class Shop:
    """An application with a service, an access key, and a user who has a role there."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.app = studio.application(private_data={"buy": {"value": True}})
        studio.role(self.app, "vip", "discount")
        self.ann, self.bob = studio.users(2)
        studio.save_data(self.ann, self.app, roles=["vip"])
        self.service_key = ServiceKey().trusted_by(studio, self.app)
        self.key = studio.root.call("accessKey", action="save", application_id=self.app, data={}).data["hash"]

    @property
    def service(self) -> dict[str, str]:
        return {"Service-Jwt": self.service_key.sign(self.studio.server, self.app)}

    @property
    def with_key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def expired(self, days: float, **claims: Any) -> str:
        return expired_jwt(self.studio.server, self.ann.user_id, days, **claims)

    def call(self, headers: dict[str, str], action: str = "get", path: str = "meta/data", **body: Any) -> ApiResponse:
        body = {"application_id": self.app, "data": {}, "action": action} | body
        response = self.studio.client.post(f"/api/permissions/{path}", json=body, headers=headers)
        return ApiResponse(response.status_code, response.json())


@pytest.fixture(scope="module")
def shop(studio: Studio) -> Shop:
    return Shop(studio)


def test_expired_jwt_with_a_factor_is_unauthorized(shop: Shop) -> None:
    headers = {"Authorization": f"Bearer {shop.expired(0.01)}", "Factor": FACTOR}
    assert shop.call(headers).status == 401


@pytest.mark.parametrize(("days", "status"), [(0.01, 200), (29.9, 200), (30.1, 401)])
def test_service_jwt_waives_the_expiry_for_get_and_save(shop: Shop, days: float, status: int) -> None:
    headers = shop.service | {"Authorization": f"Bearer {shop.expired(days)}"}
    assert shop.call(headers).status == status
    data = {"user_id": shop.bob.user_id, "public_data": {"seen": {"value": days}}}
    assert shop.call(headers, "save", data=data).status == status


@pytest.mark.parametrize("action", ["get", "save"])
def test_service_jwt_waives_no_expiry_at_other_applications_even_beside_the_factor(
    studio: Studio, shop: Shop, action: str
) -> None:
    """Otherwise the owner of any application could use the old JWT of a lost device everywhere."""
    stranger = studio.application()
    data = {"user_id": studio.root.user_id}
    for jwt, elsewhere in (
        (expired_jwt(studio.server, studio.root.user_id, 0.01), 403),
        (user_jwt(studio.server, studio.root.user_id), 200),
    ):
        headers = shop.service | {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
        assert shop.call(headers, action, application_id=stranger, data=data).status == elsewhere
        assert shop.call(headers, action, data=data).status == 200


@pytest.mark.parametrize(("days", "status"), [(0.01, 200), (29.9, 200), (30.1, 401)])
def test_access_key_waives_the_expiry_for_get(shop: Shop, days: float, status: int) -> None:
    response = shop.call(shop.with_key, jwt=shop.expired(days))
    assert response.status == status
    if status == 200:
        assert response.body == {
            "status": "OK",
            "data": ["private_data.buy", "private_data.discount"],
            "user_id": shop.ann.user_id,
            "expired": 0,
        }


def test_access_key_does_not_waive_the_expiry_for_save(studio: Studio, shop: Shop) -> None:
    carl = studio.user()
    studio.give_secret(carl, shop.app, public={"canWrite": "self"})
    data = {"user_id": carl.user_id, "public_data": {"color": {"value": "red"}}}
    expired = expired_jwt(studio.server, carl.user_id, 0.01)
    assert shop.call(shop.with_key, "save", jwt=expired, data=data).status == 401
    assert shop.call(shop.with_key, "save", jwt=carl.jwt, data=data).status == 401
    with_factor = shop.with_key | {"Factor": FACTOR}
    assert shop.call(with_factor, "save", jwt=expired, data=data).status == 401
    assert shop.call(with_factor, "save", jwt=carl.jwt, data=data).status == 200


def test_access_key_gives_the_user_no_additional_rights(shop: Shop) -> None:
    data = {"user_id": shop.ann.user_id, "roles": []}
    assert shop.call(shop.with_key | {"Factor": FACTOR}, "save", jwt=shop.ann.jwt, data=data).status == 403
    other = shop.call(shop.with_key, jwt=shop.ann.jwt, data={"user_id": shop.bob.user_id, "type": "tree"})
    assert set(other.data) == {"public_data"}


def test_other_defects_of_an_expired_jwt_are_unauthorized(studio: Studio, shop: Shop) -> None:
    disabled = studio.user()
    studio.server.sso("user", "disable", disabled.user_id)
    tampered = shop.expired(0.01)[:-8] + "AAAAAAAA"
    elsewhere = shop.expired(0.01, iss="https://elsewhere.example.com")
    bound = shop.expired(0.01, ips=["10.0.0.0/8"])
    other_kind = shop.expired(0.01, typ="id_token")
    of_disabled = expired_jwt(studio.server, disabled.user_id, 0.01)
    for token in (tampered, elsewhere, bound, other_kind, of_disabled):
        assert shop.call(shop.with_key, jwt=token).status == 401
        assert shop.call(shop.service | {"Authorization": f"Bearer {token}"}).status == 401


def test_expired_jwt_is_unauthorized_at_other_endpoints(shop: Shop) -> None:
    headers = shop.service | {"Authorization": f"Bearer {shop.expired(0.01)}"}
    for path in ("user/info", "application", "roles", "meta/schema", "accessKey", "project", "audit"):
        assert shop.call(headers, path=path).status == 401


@pytest.mark.parametrize("way", ["service", "with_key"])
def test_service_jwt_or_access_key_reads_roles_without_a_user_jwt(shop: Shop, way: str) -> None:
    data = {"user_id": shop.ann.user_id, "type": "roles"}
    response = shop.call(getattr(shop, way), data=data)
    assert response.body == {"status": "OK", "data": ["vip"], "user_id": shop.ann.user_id, "expired": 0}


@pytest.mark.parametrize("way", ["service", "with_key"])
@pytest.mark.parametrize("kind", ["list", "tree", None])
def test_only_roles_are_readable_without_a_user_jwt(shop: Shop, way: str, kind: str | None) -> None:
    data = {"user_id": shop.ann.user_id} | ({"type": kind} if kind else {})
    assert shop.call(getattr(shop, way), data=data).status == 401
    assert shop.call(getattr(shop, way), "save", data=data | {"type": "roles", "roles": []}).status == 401


@pytest.mark.parametrize("way", ["service", "with_key"])
def test_request_without_a_user_jwt_must_name_an_existing_user(shop: Shop, way: str) -> None:
    assert shop.call(getattr(shop, way), data={"type": "roles"}).status == 400
    response = shop.call(getattr(shop, way), data={"type": "roles", "user_id": "999999999"})
    assert (response.status, response.body["error"]) == (404, "user not found")


def test_access_key_is_valid_for_its_own_application_only(studio: Studio, shop: Shop) -> None:
    sister = studio.application()
    data = {"user_id": shop.ann.user_id, "type": "roles"}
    assert shop.call(shop.with_key, application_id=sister, data=data).status == 403
    assert shop.call(shop.with_key, application_id=1, data=data).status == 403
    assert shop.call(shop.with_key, application_id=sister, jwt=shop.ann.jwt).status == 403
    with_factor = shop.with_key | {"Factor": FACTOR}
    assert shop.call(with_factor, "save", application_id=sister, jwt=shop.ann.jwt, data=data).status == 403


def test_service_without_a_user_is_valid_in_its_own_project_only(studio: Studio, shop: Shop) -> None:
    data = {"user_id": shop.ann.user_id, "type": "roles"}
    assert shop.call(shop.service, application_id=studio.application(), data=data).status == 403
    assert shop.call(shop.service, application_id=1, data=data).status == 403


def test_application_id_defaults_to_the_application_of_the_service_jwt(shop: Shop) -> None:
    headers = shop.service | {"Authorization": f"Bearer {shop.ann.jwt}"}
    response = shop.studio.client.post(
        "/api/permissions/meta/data", json={"action": "get", "data": {}}, headers=headers
    ).json()
    assert response["data"] == ["private_data.buy", "private_data.discount"]
    assert shop.call(headers, application_id=None).status == 400
    assert shop.call({"Authorization": f"Bearer {shop.ann.jwt}", "Factor": FACTOR}, application_id=None).status == 400


def test_service_reads_and_saves_every_section_of_every_user(shop: Shop) -> None:
    headers = shop.service | {"Authorization": f"Bearer {shop.ann.jwt}"}
    tree = shop.call(headers, data={"user_id": shop.bob.user_id, "type": "tree"}).data
    assert set(tree) == {"login", "public_data", "private_data", "secret_data", "roles"}
    data = {"user_id": shop.bob.user_id, "roles": ["vip"], "private_data": {"gift": {"value": True}}}
    assert shop.call(headers, "save", data=data).data["roles"] == ["vip"]


def test_deleted_access_key_is_unauthorized(studio: Studio, shop: Shop) -> None:
    key = studio.root.call("accessKey", action="save", application_id=shop.app, data={}).data
    data = {"user_id": shop.ann.user_id, "type": "roles"}
    headers = {"Authorization": f"Bearer {key['hash']}"}
    assert shop.call(headers, data=data).status == 200
    deleted = studio.root.call("accessKey", action="delete", application_id=shop.app, data={"id": key["id"]})
    assert deleted.status == 200
    assert shop.call(headers, data=data).status == 401


def test_unknown_access_key_is_unauthorized_even_with_a_valid_jwt(shop: Shop) -> None:
    headers = {"Authorization": "Bearer no-such-key-no-such-key-no-such-key", "Factor": FACTOR}
    assert shop.call(headers, jwt=shop.ann.jwt).status == 401


def test_user_jwt_in_the_body_names_the_caller(studio: Studio, shop: Shop) -> None:
    token = user_jwt(studio.server, shop.bob.user_id)
    assert shop.call(shop.with_key, jwt=token).body["user_id"] == shop.bob.user_id
