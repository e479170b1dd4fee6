"""Protected roles, and moves of applications, need more than the right to manage a project's applications."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, ApiUser
from tests.perm.endpoints.team import Team, TeamProject, refused

RULE = {"private_data": {"rule": {"value": True}}}


ROLES: tuple[dict[str, Any], ...] = (
    {"name": "new", "protected": True},
    {"name": "new", "protected": True, "default": True, "meta": RULE},
    {"name": "guard", "protected": True},
    {"name": "guard", "meta": RULE},
    {"name": "chief", "default": True},
    {"name": "chief", "description": "Mine"},
    {"name": "chief", "protected": False, "meta": {}},
    {"name": "chief", "condition": {"everyone": True}},
    {"name": "chief", "params": "x"},
    {"name": "chief", "user_limit": 1},
)


def test_protected_roles_are_changed_only_with_the_schema_right(team: Team) -> None:
    def save(caller: ApiUser, role: dict[str, Any]) -> Callable[[TeamProject], ApiResponse]:
        return lambda project: project.save_role(caller, **role)

    refused(team.project(), *(save(caller, role) for caller in (team.owner, team.developer) for role in ROLES))


@pytest.mark.parametrize("name", ["owner", "developer"])
def test_protected_role_is_deleted_only_with_the_schema_right(team: Team, name: str) -> None:
    project = team.project()
    caller: ApiUser = getattr(team, name)
    refused(project, lambda project: project.delete_role(caller, "chief"))
    team.studio.give_secret(caller, project.app, "canModifySchema")
    assert project.save_role(caller, name="chief", description="Mine").status == 200
    assert project.delete_role(caller, "chief").status == 200


def test_regular_roles_need_the_right_to_manage_applications_only(team: Team) -> None:
    project = team.project()
    patrol = {"private_data": {"patrol": {"value": True}}}
    assert project.save_role(team.developer, name="new", meta=patrol, default=True).status == 200
    assert project.delete_role(team.developer, "guard").status == 200


def test_protected_role_becomes_regular_when_it_is_saved_without_protection(team: Team) -> None:
    project, root = team.project(), team.studio.root
    refused(project, lambda project: project.save_role(root, name="chief", protected=False), status=400)
    assert project.save_role(root, name="chief", protected=False, meta={}).data["protected"] is False


def move(caller: ApiUser, app: int, project_id: str | None) -> ApiResponse:
    return caller.call("application", action="save", data={"application_id": app, "project_id": project_id})


def test_only_root_moves_an_application_without_project(team: Team) -> None:
    target, app = team.project(), team.studio.application()
    team.studio.give_secret(team.owner, app, "canSave", "canRead", "canModifySchema", "canCreateJwt")
    team.studio.give_rules(team.owner, "can_create_app", "can_remove_apps")
    assert move(team.owner, app, target.id).status == 403
    team.studio.give_rules(team.owner)
    assert move(team.studio.root, app, target.id).status == 200


@pytest.mark.parametrize("name", ["owner", "manager", "developer"])
def test_application_is_moved_with_rights_in_both_projects(team: Team, name: str) -> None:
    source, destination = team.project(), team.project()
    caller: ApiUser = getattr(team, name)
    elsewhere = team.studio.project(team.stranger)
    assert move(caller, source.app, elsewhere).status == 403
    assert move(team.stranger, source.app, elsewhere).status == 403
    assert move(caller, source.app, destination.id).status == 200
    assert move(caller, destination.app, None).status == 403


def test_move_of_an_application_deletes_its_access_keys(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    key = team.owner.call("accessKey", action="save", application_id=source.app, data={}).data["hash"]
    body = {"action": "get", "application_id": source.app, "data": {"type": "roles", "user_id": team.owner.user_id}}
    headers = {"Authorization": f"Bearer {key}"}
    assert studio.client.post("/api/permissions/meta/data", json=body, headers=headers).status_code == 200
    assert move(team.owner, source.app, destination.id).status == 200
    assert studio.client.post("/api/permissions/meta/data", json=body, headers=headers).status_code == 401
    assert team.owner.call("accessKey", action="get", application_id=source.app).data == []
    trail = studio.root.call("audit", data={"application_id": source.app, "operation": "access_key.delete"}).data
    assert [entry["project_id"] for entry in trail] == [source.id]
