"""The last administrator of the service or of a project cannot be disabled."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.admin.conftest import Administrator
from tests.kit.browser import query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import ApiUser, Studio

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
    assert operations(root, user.user_id).isdisjoint({"user.save", "user.disable"})
    assert root.request("PATCH", f"/users/{user.user_id}", json={"nick": "Still"}).status_code == 200


def test_one_of_two_administrators_can_be_disabled(server: Server, studio: Studio, root: Administrator) -> None:
    first, second = studio.user(), studio.user()
    project = studio.project(first)
    studio.join(project, second, project=["admin"])
    assert disable(root, first.user_id)[0] == 200
    assert disable(root, second.user_id)[0] == 409
    server.sso("user", "enable", first.login)
    server.sso("user", "disable", second.login)
    assert "user.disable" in operations(root, second.user_id)


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
