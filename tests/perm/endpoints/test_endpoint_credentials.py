"""The credentials that each permission endpoint accepts in place of the device factor.

The caller has every right, so a 401 or 403 is always caused by the credentials.

More than 300 lines, because the tests share the matrix of endpoints and credentials.
"""

from collections.abc import Callable
from typing import Any

import pytest

from sso.perm.accepted_credentials import ENDPOINT_RULES
from tests.kit.endpoint_credentials import (
    APPLICATION_CALLS,
    CALLER_CALLS,
    PASSED,
    PROJECT_CALLS,
    Call,
    Credentials,
    Office,
    _call,
)
from tests.kit.long_tests import usual_part
from tests.perm.endpoints.conftest import FACTOR, Studio
from tests.perm.endpoints.tokens import ip_headers


@pytest.fixture(scope="module")
def office(studio: Studio) -> Office:
    return Office(studio)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# Each combination of credentials, as headers and fields of the body.
CREDENTIALS: dict[str, Callable[[Office], Credentials]] = {
    "factor": lambda o: (bearer(o.studio.root.jwt) | {"Factor": FACTOR}, {}),
    "factor in the body": lambda o: ({}, {"jwt": o.studio.root.jwt, "factor": FACTOR}),
    "factor and service": lambda o: (bearer(o.studio.root.jwt) | {"Factor": FACTOR} | o.service, {}),
    "token of an own site with factor": lambda o: (bearer(o.own_site_token) | {"Factor": FACTOR}, {}),
    "nothing": lambda o: (bearer(o.studio.root.jwt), {}),
    "wrong factor": lambda o: (bearer(o.studio.root.jwt) | {"Factor": "another"}, {}),
    "service": lambda o: (bearer(o.studio.root.jwt) | o.service, {}),
    "service in the body": lambda o: ({}, {"jwt": o.studio.root.jwt, "service_jwt": o.service["Service-Jwt"]}),
    "service and wrong factor": lambda o: (bearer(o.studio.root.jwt) | o.service | {"Factor": "another"}, {}),
    "key": lambda o: (bearer(o.key["hash"]), {"jwt": o.studio.root.jwt}),
    "key and wrong factor": lambda o: (bearer(o.key["hash"]) | {"Factor": "another"}, {"jwt": o.studio.root.jwt}),
    "key and service": lambda o: (bearer(o.key["hash"]) | o.service, {"jwt": o.studio.root.jwt}),
    "key and service of another application": lambda o: (
        bearer(o.key["hash"]) | o.other_service,
        {"jwt": o.studio.root.jwt},
    ),
    "site token": lambda o: (bearer(o.site_token), {}),
    "site token and factor": lambda o: (bearer(o.site_token) | {"Factor": FACTOR}, {}),
    "site token and service": lambda o: (bearer(o.site_token) | o.service, {}),
    "site token and key": lambda o: (bearer(o.key["hash"]), {"jwt": o.site_token}),
    "site token, key and service": lambda o: (bearer(o.key["hash"]) | o.service, {"jwt": o.site_token}),
}
FACTORS = ("factor", "factor in the body", "factor and service", "token of an own site with factor")
SERVICES = ("service", "service in the body", "service and wrong factor")
# These show which rule of `ENDPOINT_RULES` an endpoint has. The other ones are variants, of which each call has some.
DECISIVE = ("factor", "nothing", "service", "key", "key and service", "site token and service")
VARIANTS = [name for name in CREDENTIALS if name not in DECISIVE]
CALLS = [*PROJECT_CALLS, *APPLICATION_CALLS, *CALLER_CALLS]


def test_matrix_covers_every_endpoint() -> None:
    called = {f"/{call.path}" for call in CALLS}
    assert called | {"/check"} == set(ENDPOINT_RULES)


def expected(credential: str, call: Call) -> set[int]:
    if credential in FACTORS:
        return PASSED
    if credential in SERVICES:
        if call in CALLER_CALLS or call.application in ("own", "sister"):
            return PASSED
        return {403} if call.application else {401}
    reads_own = call.reads_data and call.application == "own"
    if credential in ("key", "key and wrong factor", "site token and key"):
        if call.reads_data:
            return PASSED if reads_own else {403}
        return {401}
    if credential == "key and service":
        if call.path != "meta/data":
            return {401}
        return PASSED if call.application == "own" else {403}
    if credential == "site token and service":
        return PASSED if reads_own else {401} if call in PROJECT_CALLS else {403}
    if credential in ("key and service of another application", "site token, key and service"):
        if call.path != "meta/data":
            return {401}
        return PASSED if reads_own else {403}
    return {401}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: CALLS[number].name.replace(" ", "-"))
def test_endpoint_accepts_only_the_credentials_of_its_target(office: Office, number: int) -> None:
    call = CALLS[number]
    for credential in (*DECISIVE, *usual_part(VARIANTS, 2, number)):
        response = office.send(call.path, CREDENTIALS[credential](office), **call.body(office))
        assert response.status in expected(credential, call), (credential, response.body)


@pytest.mark.parametrize("application", ["own", "sister", "stranger"])
def test_check_accepts_the_credentials_of_a_get(office: Office, application: str) -> None:
    """If they are valid, but not for the application of a question, that question has the error of the get."""
    application_id = getattr(office, application)
    get = {"action": "get", "application_id": application_id, "data": {"user_id": office.bob_id}}
    question = {"user_id": office.bob_id, "application_id": application_id, "rule": "x"}
    for credential, credentials in CREDENTIALS.items():
        read = office.send("meta/data", credentials(office), **get)
        checked = office.send("check", credentials(office), data={"questions": [question]})
        if read.status == 403:
            assert checked.data == [{"allow": False, "error": read.body["error"]}], credential
        else:
            assert checked.status == read.status, credential
            assert read.status == 401 or checked.data == [{"allow": False}], credential


def test_service_jwt_of_another_project_cannot_save_membership(studio: Studio, office: Office) -> None:
    """The owner of an application may have the JWT of an administrator who logged in there."""
    victim = studio.project(studio.root)
    users = [{"user_id": office.bob.user_id, "roles": {"project": ["admin"]}}]
    body = {"action": "save", "data": {"id": victim, "users": users}}
    assert office.send("project/membership", CREDENTIALS["service"](office), **body).status == 401
    members = studio.root.call("project/membership", action="get", data={"id": victim}).data["users"]
    assert [member["user_id"] for member in members] == [studio.root.user_id]


def test_service_jwt_cannot_move_its_application_to_another_project(studio: Studio, office: Office) -> None:
    """In the other project it would replace the factor for all applications."""
    target = studio.project()
    data = {"application_id": office.own, "project_id": target}
    assert office.send("application", CREDENTIALS["service"](office), action="save", data=data).status == 403
    same = {"application_id": office.own, "project_id": office.project}
    assert office.send("application", CREDENTIALS["service"](office), action="save", data=same).status == 200
    application = studio.root.call("application", action="get", data={"application_id": office.own}).data
    assert application["project_id"] == office.project


@pytest.mark.parametrize("credential", ["key", "site token and key", "site token and service"])
def test_nothing_is_saved_without_factor_or_service_jwt(studio: Studio, office: Office, credential: str) -> None:
    secret = {"application": {"canSave": {"value": True}}}
    data = {"user_id": office.bob.user_id, "secret_data": secret}
    body = {"action": "save", "application_id": office.own, "data": data}
    assert office.send("meta/data", CREDENTIALS[credential](office), **body).status in (401, 403)
    read = {"user_id": office.bob.user_id, "type": "tree"}
    tree = studio.root.call("meta/data", action="get", application_id=office.own, data=read).data
    assert tree["secret_data"].get("application", {}).get("canSave", {}).get("value") is not True


def test_audit_names_the_service_and_the_key_beside_the_user(studio: Studio, office: Office) -> None:
    for number, (credential, service, key) in enumerate(
        (
            ("factor", None, None),
            ("service", office.own, None),
            ("factor and service", office.own, None),
            ("key and service", office.own, office.key["id"]),
        )
    ):
        data = {"user_id": office.bob.user_id, "public_data": {"seen": {"value": number + 1}}}
        body = {"action": "save", "application_id": office.own, "data": data}
        assert office.send("meta/data", CREDENTIALS[credential](office), **body).status == 200
        entry = studio.root.call("audit", data={"application_id": office.own, "most": 1}).data[0]
        assert (entry["user_id"], entry["service_id"], entry["key_id"]) == (studio.root.user_id, service, key)


# --- the key of a signed address ---------------------------------------------------------------------------------


@pytest.mark.parametrize("call", PROJECT_CALLS + CALLER_CALLS, ids=lambda call: call.name.replace(" ", "-"))
def test_unused_field_selects_no_key_for_a_signed_address(office: Office, call: Call) -> None:
    headers, fields = CREDENTIALS["factor"](office)
    signed = (headers | ip_headers(office.key, "10.1.2.3"), fields)
    response = office.send(call.path, signed, **call.body(office))
    if call.path == "application/tags":  # the target of this endpoint is this field
        assert response.status == 200
    else:
        assert (response.status, response.body["error"]) == (403, "Ip is signed for another application")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("application", {"action": "get", "application_id": "$own", "data": {"application_id": "$stranger"}}),
        ("accessKey", {"action": "get", "application_id": "$stranger", "data": {"application_id": "$own"}}),
        ("roles", {"action": "get", "application_id": "$stranger", "data": {"application_id": "$own"}}),
        ("meta/schema", {"action": "get", "application_id": "$stranger", "data": {"application_id": "$own"}}),
        ("meta/data", {"action": "get", "application_id": "$stranger", "data": {"application_id": "$own"}}),
    ],
)
def test_signed_address_needs_a_key_of_the_application_that_the_endpoint_reads(
    office: Office, path: str, body: dict[str, Any]
) -> None:
    headers, fields = CREDENTIALS["factor"](office)
    signed = (headers | ip_headers(office.key, "10.1.2.3"), fields)
    assert office.send(path, signed, **_call(path, **body).body(office)).status == 403


def test_audit_names_the_key_that_signed_an_address(studio: Studio, office: Office) -> None:
    headers, fields = CREDENTIALS["factor"](office)
    data = {"user_id": office.bob.user_id, "public_data": {"seen": {"value": "from there"}}}
    signed = (headers | ip_headers(office.key, "10.1.2.3"), fields)
    body = {"action": "save", "application_id": office.own, "data": data}
    assert office.send("meta/data", signed, **body).status == 200
    entry = studio.root.call("audit", data={"application_id": office.own, "most": 1}).data[0]
    assert (entry["address"], entry["key_id"]) == ("10.1.2.3", office.key["id"])


def test_signed_address_activates_no_condition_of_a_central_role(studio: Studio, office: Office) -> None:
    """An application vouches for addresses at itself only, not for an address in the network of administrators."""
    role = "office_network"
    studio.role(1, role, "can_create_app", condition={"ip": "10.0.0.0/8"})
    studio.role(1, "here", "can_remove_apps", condition={"ip": "127.0.0.0/8"})
    headers = {"Authorization": f"Bearer {office.bob.jwt}", "Factor": FACTOR}
    key = studio.root.call("accessKey", action="save", application_id=1, data={}).data
    read = {"action": "get", "application_id": 1, "data": {}, "options": {"with_roles": True}}
    by_central_key = office.send("meta/data", (headers | ip_headers(key, "10.1.2.3"), {}), **read)
    assert role in by_central_key.data["roles"]
    disposable = studio.application()
    own_key = studio.root.call("accessKey", action="save", application_id=disposable, data={}).data
    delete = {"action": "delete", "data": {"application_id": disposable}}
    assert office.send("application", (headers | ip_headers(own_key, "127.9.9.9"), {}), **delete).status == 403
    assert office.send("application", (headers, {}), **delete).status == 200
    studio.root.call("accessKey", action="delete", application_id=1, data={"id": key["id"]})
    for name in (role, "here"):
        studio.root.call("roles", action="delete", application_id=1, data={"name": name})
