"""The last administrator of the service or of a project cannot be disabled."""

from collections.abc import Iterator

import pytest

from tests.admin.conftest import Administrator
from tests.kit.browser import query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import ApiUser, Studio

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
