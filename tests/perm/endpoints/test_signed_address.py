"""A server acting for a client: ``Ip`` with ``Signature``, made with an access key of the application."""

import time
from typing import Any

import pytest

from tests.perm.endpoints.conftest import FACTOR, ApiResponse, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey, ip_headers


class House:
    """An application with a role for one network, and an access key."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.app = studio.application()
        studio.role(self.app, "inside", "enter", condition={"ip": "10.0.0.0/8"})
        self.key: dict[str, Any] = studio.root.call("accessKey", action="save", application_id=self.app, data={}).data
        self.ann: ApiUser = studio.user()

    def ask(self, headers: dict[str, str], application_id: int | None = None) -> ApiResponse:
        body = {"action": "get", "application_id": application_id or self.app, "data": {"type": "list_short"}}
        return self.ann.call("meta/data", headers, **body)


@pytest.fixture(scope="module")
def house(studio: Studio) -> House:
    return House(studio)


def test_a_signed_address_counts_as_the_clients(house: House) -> None:
    assert house.ask({}).data == []
    assert house.ask(ip_headers(house.key, "10.1.2.3")).data == ["enter"]
    assert house.ask(ip_headers(house.key, "::ffff:10.1.2.3")).data == ["enter"]


def test_the_answer_for_one_address_is_never_given_to_another(house: House) -> None:
    for _ in range(5):
        assert house.ask(ip_headers(house.key, "10.1.1.1")).data == ["enter"]
        assert house.ask(ip_headers(house.key, "8.8.8.8")).data == []


def test_it_counts_for_the_keys_own_application_only(studio: Studio, house: House) -> None:
    for other in (studio.application(), 1):
        assert house.ask(ip_headers(house.key, "10.1.2.3"), other).status == 403
    assert house.ann.call("user/info", ip_headers(house.key, "10.1.2.3")).status == 403


def test_it_counts_for_the_application_of_the_service_jwt(house: House) -> None:
    token = ServiceKey().trusted_by(house.studio, house.app).sign(house.studio.server, house.app)
    headers = {"Authorization": f"Bearer {house.ann.jwt}", "Service-Jwt": token} | ip_headers(house.key, "10.1.2.3")
    body = {"action": "get", "data": {"type": "list_short"}}
    assert house.studio.client.post("/api/permissions/meta/data", json=body, headers=headers).json()["data"] == [
        "enter"
    ]


def test_the_authorization_header_may_carry_the_address(house: House) -> None:
    signed = ip_headers(house.key, "10.1.2.3")
    headers = {"Authorization": f"Ip {signed['Ip']}", "Signature": signed["Signature"]}
    body = {"action": "get", "application_id": house.app, "data": {"type": "list_short"}}
    body |= {"jwt": house.ann.jwt, "factor": FACTOR}
    response = house.studio.client.post("/api/permissions/meta/data", json=body, headers=headers)
    assert response.json()["data"] == ["enter"]


@pytest.mark.parametrize(("seconds", "status"), [(-290, 200), (290, 200), (-310, 403), (310, 403)])
def test_the_time_may_be_off_by_five_minutes(house: House, seconds: int, status: int) -> None:
    assert house.ask(ip_headers(house.key, "10.1.2.3", time.time() + seconds)).status == status


def test_unsigned_an_equal_address_is_ignored_and_a_different_one_refused(house: House) -> None:
    assert house.ask({"Ip": "127.0.0.1"}).data == []
    assert house.ask({"Ip": "10.1.2.3"}).status == 403


@pytest.mark.parametrize("said", ["", "x", "10.0.0", "10.0.0.0/8", "010.0.0.1", "1", "fe80::1%eth0"])
def test_what_is_no_address_is_refused(house: House, said: str) -> None:
    assert house.ask({"Ip": said}).status == 403
    assert house.ask(ip_headers(house.key, said)).status == 403


def test_a_signature_is_over_this_address_and_this_time(house: House) -> None:
    good = ip_headers(house.key, "10.1.2.3")
    key_id, moment, made = good["Signature"].split(":")
    for signature in (
        "",
        "x",
        made,
        f"{key_id}:{moment}:{'0' * 64}",
        f"{key_id}:{int(moment) + 1}:{made}",
        f"{'0' * 16}:{moment}:{made}",
        f"{key_id}:{moment}:{made}:",
        f"{key_id}:-{moment}:{made}",
        f"{house.key['hash']}:{moment}:{made}",
    ):
        assert house.ask({"Ip": "10.1.2.3", "Signature": signature}).status == 403
    assert house.ask(good | {"Ip": "10.1.2.4"}).status == 403
    assert house.ask({"Ip": "127.0.0.1", "Signature": good["Signature"]}).status == 403


def test_other_headers_say_nothing_about_the_address(house: House) -> None:
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "Client-IP"):
        assert house.ask({name: "10.1.2.3"}).data == []


def test_a_deleted_key_signs_nothing(studio: Studio, house: House) -> None:
    made = studio.root.call("accessKey", action="save", application_id=house.app, data={}).data
    assert house.ask(ip_headers(made, "10.1.2.3")).status == 200
    delete: dict[str, Any] = {"application_id": house.app, "data": {"id": made["id"]}}
    assert studio.root.call("accessKey", action="delete", **delete).status == 200
    assert house.ask(ip_headers(made, "10.1.2.3")).status == 403
