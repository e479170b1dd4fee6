"""The last administrator of the service keeps the role root, and is not disabled, nor is that of a project."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import each_worker, query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import ApiUser, Studio

pytestmark = pytest.mark.two_workers

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "3"))
ADMIN = {"project": ["admin"]}
ROOTS = "SELECT user_id FROM role_assignments WHERE application_id = 1 AND name = 'root' AND user_id <> $1"


def disable(root: Administrator, user_id: str) -> tuple[int, str]:
    response = root.request("PATCH", f"/users/{user_id}", json={"disabled": True})
    return response.status_code, response.json().get("error", "")


def operations(root: Administrator, user_id: str) -> set[str]:
    return {entry["operation"] for entry in root.data("/audit", target=user_id)}


@pytest.fixture
def only_root(server: Server, studio: Studio) -> Iterator[ApiUser]:
    others = [row["user_id"] for row in query(server, ROOTS, studio.root.user_id)]
    disabled = query(
        server, "UPDATE users SET disabled = true WHERE user_id = ANY ($1) AND NOT disabled RETURNING user_id", others
    )
    yield studio.root
    query(server, "UPDATE users SET disabled = false WHERE user_id = ANY ($1)", [row["user_id"] for row in disabled])


def test_only_administrator_of_the_service_stays_enabled(
    server: Server, root: Administrator, only_root: ApiUser
) -> None:
    status, error = disable(root, only_root.user_id)
    assert (status, "only administrator of the service" in error) == (409, True)
    refused = server.sso("user", "disable", only_root.login, check=False)
    assert (refused.returncode, "only administrator of the service" in refused.stderr) == (1, True)
    assert root.data(f"/users/{only_root.user_id}")["disabled"] is False


def test_only_administrator_of_a_project_stays_enabled(server: Server, studio: Studio, root: Administrator) -> None:
    user = studio.user()
    studio.project(user)
    status, error = disable(root, user.user_id)
    assert (status, "only administrator of the project" in error) == (409, True)
    refused = server.sso("user", "disable", user.login, check=False)
    assert (refused.returncode, "only administrator of the project" in refused.stderr) == (1, True)
    assert root.data(f"/users/{user.user_id}")["disabled"] is False
    assert operations(root, user.user_id).isdisjoint({"user.save"})
    assert root.request("PATCH", f"/users/{user.user_id}", json={"nick": "Still"}).status_code == 200


def test_one_of_two_administrators_can_be_disabled(server: Server, studio: Studio, root: Administrator) -> None:
    first, second = studio.user(), studio.user()
    project = studio.project(first)
    studio.join(project, second, project=["admin"])
    assert disable(root, first.user_id)[0] == 200
    assert disable(root, second.user_id)[0] == 409
    server.sso("user", "enable", first.login)
    server.sso("user", "disable", second.login)
    assert "user.save" in operations(root, second.user_id)


def apply(server: Server, root: Administrator, document: dict[str, Any]) -> str:
    """Applies the document in both ways. Returns the error, which is the same, or an empty text."""
    response = root.request("POST", "/state/apply", json=document)
    error = str(response.json().get("error", ""))
    assert response.status_code == (409 if error else 200), response.text
    applied = server.sso("apply", "-", stdin=json.dumps(document), check=False)
    assert applied.stderr == (f"sso: {error}\n" if error else "")
    return error


def test_document_keeps_the_only_administrator_of_the_service(
    server: Server, root: Administrator, only_root: ApiUser
) -> None:
    no_roles = {"user_id": only_root.user_id, "application_id": 1, "data": {"roles": []}}
    for document in ({"users": [{"login": only_root.login, "disabled": True}]}, {"permissions": [no_roles]}):
        assert "only administrator of the service" in apply(server, root, document)
    assert root.data(f"/users/{only_root.user_id}")["disabled"] is False


def test_document_may_replace_the_only_administrator_of_the_service(
    server: Server, studio: Studio, root: Administrator, only_root: ApiUser
) -> None:
    other = studio.user()
    first = {"user_id": only_root.user_id, "application_id": 1, "data": {"roles": []}}
    second = {"user_id": other.user_id, "application_id": 1, "data": {"roles": ["root"]}}
    assert root.request("POST", "/state/apply", json={"permissions": [first, second]}).status_code == 200
    back = {"permissions": [first | {"data": {"roles": ["root"]}}, second | {"data": {"roles": []}}]}
    assert server.sso("apply", "-", stdin=json.dumps(back)).returncode == 0
    assert root.data(f"/users/{only_root.user_id}")["disabled"] is False


def test_document_keeps_the_only_administrator_of_a_project(
    server: Server, studio: Studio, root: Administrator
) -> None:
    user = studio.user()
    project = studio.project(user)
    document = {"users": [{"login": user.login, "disabled": True}]}
    assert apply(server, root, document) == "a project would have no administrator with access to it"
    assert root.data(f"/users/{user.user_id}")["disabled"] is False
    members = {"memberships": [{"id": project, "users": [{"user_id": studio.user().user_id, "roles": ADMIN}]}]}
    assert apply(server, root, document | members) == ""


def unassign(caller: Administrator, user_id: str, **role: Any) -> httpx.Response:
    """Takes the role root, or replaces it by the given assignment of it."""
    body = {"application_id": 1, "roles": [{"name": "root", **role}] if role else []}
    return caller.request("PATCH", f"/users/{user_id}/permissions", json=body)


def test_only_administrator_of_the_service_keeps_the_role_root(
    server: Server, root: Administrator, only_root: ApiUser
) -> None:
    saved = only_root.call(
        "meta/data", action="save", application_id=1, data={"user_id": only_root.user_id, "roles": []}
    )
    assert (saved.status, "only administrator of the service" in saved.body["error"]) == (409, True)
    for suffix in ("", "?dry_run=1"):
        body = {"application_id": 1, "roles": []}
        refused = root.request("PATCH", f"/users/{only_root.user_id}/permissions{suffix}", json=body)
        assert (refused.status_code, "only administrator of the service" in refused.json()["error"]) == (409, True)
    command = server.sso("role", "unassign", only_root.login, "root", check=False)
    assert (command.returncode, "only administrator of the service" in command.stderr) == (1, True)
    assert "root" in root.data(f"/users/{only_root.user_id}/permissions", application_id=1, type="roles")


def test_console_keeps_the_role_root_of_the_only_administrator(server: Server, only_root: ApiUser) -> None:
    path = f"/console/applications/1/users/{only_root.user_id}"
    with ConsoleBrowser(server, only_root) as browser:
        browser.open(path)
        fields = {name: value for name, value in browser.form(path).items() if name != "keep:root"}
        answer = browser.post(path, fields)
    assert (answer.status_code, "only administrator of the service" in answer.text) == (409, True)


def test_role_of_the_only_administrator_does_not_become_temporary(
    studio: Studio, root: Administrator, only_root: ApiUser
) -> None:
    later = int(time.time()) + 9999
    other = studio.user()
    assert unassign(root, other.user_id, expired=later).status_code == 200  # a second administrator, for some hours
    for answer in (
        unassign(root, only_root.user_id),
        unassign(root, only_root.user_id, expired=later),
        root.request("PATCH", f"/users/{only_root.user_id}", json={"disabled": True}),
    ):
        assert answer.status_code == 409, answer.text
    assert unassign(root, other.user_id).status_code == 200


def test_disabled_administrator_does_not_count(studio: Studio, root: Administrator, only_root: ApiUser) -> None:
    other = studio.user()
    studio.give_roles(other, "root")
    assert disable(root, other.user_id)[0] == 200
    assert unassign(root, only_root.user_id).status_code == 409


@pytest.mark.parametrize("second", ["unassign", "disable"])
def test_two_administrators_do_not_remove_each_other_at_once(
    server: Server, studio: Studio, service_client: Administrator, only_root: ApiUser, second: str
) -> None:
    """The caller is a service client of the central application, so that it can restore the administrators."""
    other = studio.user()
    with each_worker(server) as clients:
        callers = [Administrator(client, service_client.headers) for client in clients]

        def remove(number: int) -> int:
            if number == 0:
                return unassign(callers[0], only_root.user_id).status_code
            return (
                unassign(callers[-1], other.user_id).status_code
                if second == "unassign"
                else disable(callers[-1], other.user_id)[0]
            )

        for _ in range(ROUNDS):
            body: dict[str, Any] = {"application_id": 1, "roles": ["root"]}
            for user_id in (only_root.user_id, other.user_id):
                answer = callers[0].request("PATCH", f"/users/{user_id}/permissions", json=body)
                assert answer.status_code == 200, answer.text
                assert callers[0].request("PATCH", f"/users/{user_id}", json={"disabled": False}).status_code == 200
            with ThreadPoolExecutor(2) as pool:
                assert sorted(pool.map(remove, range(2))) == [200, 409]
    body = {"application_id": 1, "roles": ["root"]}
    assert service_client.request("PATCH", f"/users/{only_root.user_id}/permissions", json=body).status_code == 200
    assert disable(service_client, other.user_id)[0] == 200
