"""Protected roles, and moves of applications, need more than the right to manage a project's applications."""

from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, ApiUser
from tests.perm.endpoints.team import Team, refused

RULE = {"private_data": {"rule": {"value": True}}}


@pytest.mark.parametrize(
    "role",
    [
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
    ],
)
@pytest.mark.parametrize("who", ["owner", "developer"])
def test_protected_roles_are_changed_only_with_the_schema_right(team: Team, who: str, role: dict[str, Any]) -> None:
    made = team.project()
    caller: ApiUser = getattr(team, who)
    refused(made, lambda made: made.save_role(caller, **role))


@pytest.mark.parametrize("who", ["owner", "developer"])
def test_protected_role_is_deleted_only_with_the_schema_right(team: Team, who: str) -> None:
    made = team.project()
    caller: ApiUser = getattr(team, who)
    refused(made, lambda made: made.delete_role(caller, "chief"))
    team.studio.give_secret(caller, made.app, "canModifySchema")
    assert made.save_role(caller, name="chief", description="Mine").status == 200
    assert made.delete_role(caller, "chief").status == 200


def test_regular_roles_need_the_right_to_manage_applications_only(team: Team) -> None:
    made = team.project()
    patrol = {"private_data": {"patrol": {"value": True}}}
    assert made.save_role(team.developer, name="new", meta=patrol, default=True).status == 200
    assert made.delete_role(team.developer, "guard").status == 200


def test_a_protected_role_becomes_regular_by_its_new_content(team: Team) -> None:
    made, root = team.project(), team.studio.root
    refused(made, lambda made: made.save_role(root, name="chief", protected=False), 400)
    assert made.save_role(root, name="chief", protected=False, meta={}).data["protected"] is False


def move(caller: ApiUser, app: int, project_id: str | None) -> ApiResponse:
    return caller.call("application", action="save", data={"application_id": app, "project_id": project_id})


def test_an_application_without_project_is_moved_by_root_only(team: Team) -> None:
    target, app = team.project(), team.studio.application()
    team.studio.give_secret(team.owner, app, "canSave", "canRead", "canModifySchema", "canCreateJwt")
    team.studio.give_rules(team.owner, "can_create_app", "can_remove_apps")
    assert move(team.owner, app, target.id).status == 403
    team.studio.give_rules(team.owner)
    assert move(team.studio.root, app, target.id).status == 200


@pytest.mark.parametrize("who", ["owner", "manager", "developer"])
def test_an_application_is_moved_with_the_right_at_both_ends(team: Team, who: str) -> None:
    source, destination = team.project(), team.project()
    caller: ApiUser = getattr(team, who)
    elsewhere = team.studio.project(team.stranger)
    assert move(caller, source.app, elsewhere).status == 403
    assert move(team.stranger, source.app, elsewhere).status == 403
    assert move(caller, source.app, destination.id).status == 200
    assert move(caller, destination.app, None).status == 403


def test_access_keys_end_when_an_application_moves(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    key = team.owner.call("accessKey", action="save", application_id=source.app, data={}).data["hash"]
    ask = {"action": "get", "application_id": source.app, "data": {"type": "roles", "user_id": team.owner.user_id}}
    headers = {"Authorization": f"Bearer {key}"}
    assert studio.client.post("/api/permissions/meta/data", json=ask, headers=headers).status_code == 200
    assert move(team.owner, source.app, destination.id).status == 200
    assert studio.client.post("/api/permissions/meta/data", json=ask, headers=headers).status_code == 401
    assert team.owner.call("accessKey", action="get", application_id=source.app).data == []
    trail = studio.root.call("audit", data={"application_id": source.app, "operation": "access_key.delete"}).data
    assert [entry["project_id"] for entry in trail] == [source.id]
