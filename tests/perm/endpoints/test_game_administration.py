"""``SSO_GSID_ADMIN=deny``: the JWT of a game is not accepted for administrative requests."""

import itertools
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from tests.kit.endpoint_credentials import APPLICATION_CALLS, CALLER_CALLS, PASSED, PROJECT_CALLS, Call, Office
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Studio
from tests.perm.endpoints.tokens import user_jwt

REFUSED = (403, "a login from a game is not accepted for administrative requests")
CALLS = [*PROJECT_CALLS, *(call for call in APPLICATION_CALLS if call.application in ("own", "none")), *CALLER_CALLS]


@pytest.fixture(scope="module")
def office(studio: Studio) -> Office:
    return Office(studio)


@pytest.fixture(scope="module")
def strict(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A second server on the same database, which denies administration to games."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = server.settings | {
        "SSO_BIND": address,
        "SSO_BASE_URL": server.base_url,
        "SSO_WORKERS": "1",
        "SSO_GSID_ADMIN": "deny",
    }
    other = Server(tmp_path_factory.mktemp("strict"), settings)
    other.start()
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=60) as client:
            yield client
    finally:
        other.stop()


def send(client: httpx.Client, path: str, jwt: str, **body: Any) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
    response = client.post(f"/api/permissions/{path}", json=body, headers=headers)
    return response.status_code, response.json().get("error", "")


def is_harmless(call: Call) -> bool:
    reads = call.body.__name__ == "get"
    return call in CALLER_CALLS or (
        reads and call.path in ("application", "accessKey", "roles", "meta/schema", "project")
    )


def test_jwt_of_a_game_cannot_administer_unless_allowed(studio: Studio, office: Office, strict: httpx.Client) -> None:
    root = studio.root.user_id
    of_game = user_jwt(studio.server, root, auth="gsid")
    others = itertools.cycle(user_jwt(studio.server, root, auth=auth) for auth in ("login", "otp", "token"))
    for call in CALLS:
        body = call.body(office)
        assert send(studio.client, call.path, of_game, **body)[0] in PASSED, call.name
        response = send(strict, call.path, of_game, **body)
        assert response[0] in PASSED if is_harmless(call) else response == REFUSED, call.name
        assert send(strict, call.path, next(others), **body)[0] in PASSED, call.name


def test_jwt_of_a_game_reads_and_saves_its_users_own_data(studio: Studio, strict: httpx.Client) -> None:
    app = studio.application()
    of_game = user_jwt(studio.server, studio.root.user_id, auth="gsid")
    for data in ({}, {"user_id": studio.root.user_id}):
        assert send(strict, "meta/data", of_game, action="get", application_id=app, data=data)[0] == 200
    own = {"user_id": studio.root.user_id, "public_data": {"seen": {"value": 1}}}
    assert send(strict, "meta/data", of_game, action="save", application_id=app, data=own)[0] == 200


def test_unused_action_does_not_make_a_write_harmless(studio: Studio, office: Office, strict: httpx.Client) -> None:
    of_game = user_jwt(studio.server, studio.root.user_id, auth="gsid")
    for path, body in (
        ("group/access", {"group_id": office.group, "data": {"users": []}}),
        ("group/tags", {"group_id": office.group, "data": {"tags": []}}),
        ("application/tags", {"application_id": office.own, "data": {"tags": []}}),
        ("publish", {"project": "Of a game"}),
    ):
        assert send(strict, path, of_game, action="get", **body) == REFUSED


def test_renewed_jwt_of_a_game_stays_one(studio: Studio, strict: httpx.Client) -> None:
    app = studio.application()
    key = studio.root.call("accessKey", action="save", application_id=app, data={}).data["hash"]
    body = {"jwt": user_jwt(studio.server, studio.root.user_id, auth="gsid"), "factor": FACTOR}
    response = strict.post("/proxy/oauth/exchangeJwt", json=body, headers={"Authorization": f"Bearer {key}"})
    renewed = response.json()["jwt"]
    assert pyjwt.decode(renewed, options={"verify_signature": False})["auth"] == "gsid"
    assert send(strict, "publish", renewed, project="Of a game") == REFUSED
