"""A server acting for a client: ``Ip`` with ``Signature``, made with an access key of the application."""

import time
from typing import Any

import pytest

from tests.perm.endpoints.conftest import FACTOR, ApiResponse, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey, ip_headers


class Office:
    """An application with a role for one network, and an access key."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.app = studio.application()
        studio.role(self.app, "inside", "enter", condition={"ip": "10.0.0.0/8"})
        self.key: dict[str, Any] = studio.root.call("accessKey", action="save", application_id=self.app, data={}).data
        self.ann: ApiUser = studio.user()

    def read(self, headers: dict[str, str], application_id: int | None = None) -> ApiResponse:
        body = {"action": "get", "application_id": application_id or self.app, "data": {"type": "list_short"}}
        return self.ann.call("meta/data", headers, **body)


@pytest.fixture(scope="module")
def office(studio: Studio) -> Office:
    return Office(studio)


def test_signed_address_counts_as_the_address_of_the_client(office: Office) -> None:
    assert office.read({}).data == []
    assert office.read(ip_headers(office.key, "10.1.2.3")).data == ["enter"]
    assert office.read(ip_headers(office.key, "::ffff:10.1.2.3")).data == ["enter"]


def test_response_for_one_address_is_not_reused_for_another(office: Office) -> None:
    for _ in range(5):
        assert office.read(ip_headers(office.key, "10.1.1.1")).data == ["enter"]
        assert office.read(ip_headers(office.key, "8.8.8.8")).data == []


def test_signed_address_counts_for_the_application_of_the_key_only(studio: Studio, office: Office) -> None:
    for other in (studio.application(), 1):
        assert office.read(ip_headers(office.key, "10.1.2.3"), other).status == 403
    assert office.ann.call("user/info", ip_headers(office.key, "10.1.2.3")).status == 403


def test_signed_address_counts_for_the_application_of_the_service_jwt(office: Office) -> None:
    token = ServiceKey().trusted_by(office.studio, office.app).sign(office.studio.server, office.app)
    headers = {"Authorization": f"Bearer {office.ann.jwt}", "Service-Jwt": token} | ip_headers(office.key, "10.1.2.3")
    body = {"action": "get", "data": {"type": "list_short"}}
    assert office.studio.client.post("/api/permissions/meta/data", json=body, headers=headers).json()["data"] == [
        "enter"
    ]


def test_authorization_header_may_contain_the_address(office: Office) -> None:
    signed = ip_headers(office.key, "10.1.2.3")
    headers = {"Authorization": f"Ip {signed['Ip']}", "Signature": signed["Signature"]}
    body = {"action": "get", "application_id": office.app, "data": {"type": "list_short"}}
    body |= {"jwt": office.ann.jwt, "factor": FACTOR}
    response = office.studio.client.post("/api/permissions/meta/data", json=body, headers=headers)
    assert response.json()["data"] == ["enter"]


@pytest.mark.parametrize(("seconds", "status"), [(-290, 200), (290, 200), (-310, 403), (310, 403)])
def test_time_of_a_signature_may_differ_by_five_minutes(office: Office, seconds: int, status: int) -> None:
    assert office.read(ip_headers(office.key, "10.1.2.3", time.time() + seconds)).status == status


def test_unsigned_address_is_ignored_if_equal_and_forbidden_if_different(office: Office) -> None:
    assert office.read({"Ip": "127.0.0.1"}).data == []
    assert office.read({"Ip": "10.1.2.3"}).status == 403


@pytest.mark.parametrize("address", ["", "x", "10.0.0", "10.0.0.0/8", "010.0.0.1", "1", "fe80::1%eth0"])
def test_invalid_address_is_forbidden(office: Office, address: str) -> None:
    assert office.read({"Ip": address}).status == 403
    assert office.read(ip_headers(office.key, address)).status == 403


def test_signature_is_valid_for_its_address_and_time_only(office: Office) -> None:
    good = ip_headers(office.key, "10.1.2.3")
    key_id, moment, created = good["Signature"].split(":")
    for signature in (
        "",
        "x",
        created,
        f"{key_id}:{moment}:{'0' * 64}",
        f"{key_id}:{int(moment) + 1}:{created}",
        f"{'0' * 16}:{moment}:{created}",
        f"{key_id}:{moment}:{created}:",
        f"{key_id}:-{moment}:{created}",
        f"{office.key['hash']}:{moment}:{created}",
    ):
        assert office.read({"Ip": "10.1.2.3", "Signature": signature}).status == 403
    assert office.read(good | {"Ip": "10.1.2.4"}).status == 403
    assert office.read({"Ip": "127.0.0.1", "Signature": good["Signature"]}).status == 403


def test_other_headers_do_not_set_the_address(office: Office) -> None:
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "Client-IP"):
        assert office.read({name: "10.1.2.3"}).data == []


def test_signature_of_a_deleted_key_is_forbidden(studio: Studio, office: Office) -> None:
    created = studio.root.call("accessKey", action="save", application_id=office.app, data={}).data
    assert office.read(ip_headers(created, "10.1.2.3")).status == 200
    delete: dict[str, Any] = {"application_id": office.app, "data": {"id": created["id"]}}
    assert studio.root.call("accessKey", action="delete", **delete).status == 200
    assert office.read(ip_headers(created, "10.1.2.3")).status == 403
