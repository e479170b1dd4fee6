"""Concurrent changes of one record on both workers: of those who have read the same version, one succeeds."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator
from tests.kit.browser import each_worker
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

pytestmark = pytest.mark.two_workers

CALLERS = 6


@pytest.fixture(scope="module")
def callers(server: Server, root: Administrator) -> Iterator[list[Administrator]]:
    """Root, with connections to both workers."""
    with each_worker(server) as clients:
        yield [Administrator(client, root.headers) for _ in range(CALLERS // len(clients)) for client in clients]


def at_once(callers: list[Administrator], method: str, path: str, headers: dict[str, str], bodies: list[Any]) -> Any:
    """The statuses of concurrent requests, each with a body of its own."""

    def send(caller: Administrator, body: Any) -> httpx.Response:
        return caller.request(method, path, headers, json=body)

    with ThreadPoolExecutor(len(callers)) as pool:
        return Counter(response.status_code for response in pool.map(send, callers, bodies))


@pytest.fixture(scope="module")
def records(studio: Studio, root: Administrator) -> dict[str, tuple[str, str]]:
    """The path of a record of each kind, and a field of it that is a text."""
    project_id = studio.project()
    application_id = studio.application(project_id)
    studio.role(application_id, "player", "play")
    key = root.request("POST", "/access-keys", json={"application_id": application_id}).json()["data"]
    return {
        "application": (f"/applications/{application_id}", "description"),
        "role": (f"/roles/{application_id}/player", "description"),
        "access key": (f"/access-keys/{key['id']}", "comment"),
        "project": (f"/projects/{project_id}", "description"),
        "group": (f"/groups/{studio.group(project_id)}", "description"),
    }


@pytest.mark.parametrize("kind", ["application", "role", "access key", "project", "group"])
def test_one_of_several_changes_of_the_same_version_succeeds(
    callers: list[Administrator], root: Administrator, records: dict[str, tuple[str, str]], kind: str
) -> None:
    path, field = records[kind]
    tag = root.get(path).headers["ETag"]
    bodies = [{field: f"change {number}"} for number in range(CALLERS)]
    assert at_once(callers, "PATCH", path, {"If-Match": tag}, bodies) == {200: 1, 412: CALLERS - 1}


def test_one_of_several_assignments_of_the_same_version_succeeds(
    studio: Studio, callers: list[Administrator], root: Administrator
) -> None:
    application_id = studio.application()
    path = f"/users/{studio.user().user_id}/permissions"
    tag = root.get(path, application_id=application_id).headers["ETag"]
    bodies = [
        {"application_id": application_id, "private_data": {f"rule{number}": {"value": True}}}
        for number in range(CALLERS)
    ]
    assert at_once(callers, "PATCH", path, {"If-Match": tag}, bodies) == {200: 1, 412: CALLERS - 1}


def test_one_of_several_deletions_of_the_same_version_succeeds(
    studio: Studio, callers: list[Administrator], root: Administrator
) -> None:
    """The first deletion changes the user, and the first retirement changes the key."""
    for _ in range(2):
        key = root.request("POST", "/signing-keys", json={"algorithm": "ES256", "side": True}).json()["data"]
        replaced = root.get("/signing-keys").json()["data"]
    kid = next(one["kid"] for one in replaced if one["retires"] and one["side"] and one["kid"] != key["kid"])
    for path in (f"/users/{studio.user().user_id}", f"/signing-keys/{kid}"):
        tag = root.get(path).headers["ETag"]
        assert at_once(callers, "DELETE", path, {"If-Match": tag}, [{}] * CALLERS) == {200: 1, 412: CALLERS - 1}, path


def test_one_of_several_documents_for_the_same_state_is_applied(
    callers: list[Administrator], root: Administrator
) -> None:
    tag = root.get("/state").headers["ETag"]
    documents = [{"users": [{"login": f"document{number}@concurrent.example"}]} for number in range(CALLERS)]
    assert at_once(callers, "POST", "/state/apply", {"If-Match": tag}, documents) == {200: 1, 412: CALLERS - 1}


def test_role_and_member_are_created_once(studio: Studio, callers: list[Administrator]) -> None:
    role = {"application_id": studio.application(), "name": "player"}
    assert at_once(callers, "POST", "/roles", {}, [role] * CALLERS) == {201: 1, 409: CALLERS - 1}
    member = {"user_id": studio.user().user_id, "roles": {"project": ["viewer"]}}
    path = f"/projects/{studio.project()}/members"
    assert at_once(callers, "POST", path, {}, [member] * CALLERS) == {201: 1, 409: CALLERS - 1}


def test_changes_of_different_members_are_all_kept(
    studio: Studio, callers: list[Administrator], root: Administrator
) -> None:
    path = f"/projects/{studio.project()}/members"
    bodies = [{"user_id": studio.user().user_id, "roles": {"project": ["viewer"]}} for _ in range(CALLERS)]
    assert at_once(callers, "POST", path, {}, bodies) == {201: CALLERS}
    members = {member["user_id"] for member in root.data(path)}
    assert members == {studio.keeper.user_id, *(body["user_id"] for body in bodies)}
