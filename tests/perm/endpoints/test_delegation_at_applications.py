"""Protected roles, and moves of applications, need more than the right to manage a project's applications."""

from typing import Any

import pytest

from tests.perm.endpoints.conftest import Answer, Person
from tests.perm.endpoints.crew import Crew, refused

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
def test_protected_roles_are_changed_only_with_the_schema_right(crew: Crew, who: str, role: dict[str, Any]) -> None:
    made = crew.project()
    caller: Person = getattr(crew, who)
    refused(made, lambda made: made.save_role(caller, **role))


@pytest.mark.parametrize("who", ["owner", "developer"])
def test_protected_role_is_deleted_only_with_the_schema_right(crew: Crew, who: str) -> None:
    made = crew.project()
    caller: Person = getattr(crew, who)
    refused(made, lambda made: made.delete_role(caller, "chief"))
    crew.studio.give_secret(caller, made.app, "canModifySchema")
    assert made.save_role(caller, name="chief", description="Mine").status == 200
    assert made.delete_role(caller, "chief").status == 200


def test_regular_roles_need_the_right_to_manage_applications_only(crew: Crew) -> None:
    made = crew.project()
    patrol = {"private_data": {"patrol": {"value": True}}}
    assert made.save_role(crew.developer, name="new", meta=patrol, default=True).status == 200
    assert made.delete_role(crew.developer, "guard").status == 200


def test_a_protected_role_becomes_regular_by_its_new_content(crew: Crew) -> None:
    made, root = crew.project(), crew.studio.root
    refused(made, lambda made: made.save_role(root, name="chief", protected=False), 400)
    assert made.save_role(root, name="chief", protected=False, meta={}).data["protected"] is False


def move(caller: Person, app: int, project_id: str | None) -> Answer:
    return caller.call("application", action="save", data={"application_id": app, "project_id": project_id})


def test_an_application_without_project_is_moved_by_root_only(crew: Crew) -> None:
    target, app = crew.project(), crew.studio.application()
    crew.studio.give_secret(crew.owner, app, "canSave", "canRead", "canModifySchema", "canCreateJwt")
    crew.studio.give_rules(crew.owner, "can_create_app", "can_remove_apps")
    assert move(crew.owner, app, target.id).status == 403
    crew.studio.give_rules(crew.owner)
    assert move(crew.studio.root, app, target.id).status == 200


@pytest.mark.parametrize("who", ["owner", "manager", "developer"])
def test_an_application_is_moved_with_the_right_at_both_ends(crew: Crew, who: str) -> None:
    here, there = crew.project(), crew.project()
    caller: Person = getattr(crew, who)
    elsewhere = crew.studio.project(crew.stranger)
    assert move(caller, here.app, elsewhere).status == 403
    assert move(crew.stranger, here.app, elsewhere).status == 403
    assert move(caller, here.app, there.id).status == 200
    assert move(caller, there.app, None).status == 403


def test_access_keys_end_when_an_application_moves(crew: Crew) -> None:
    here, there = crew.project(), crew.project()
    studio = crew.studio
    key = crew.owner.call("accessKey", action="save", application_id=here.app, data={}).data["hash"]
    ask = {"action": "get", "application_id": here.app, "data": {"type": "roles", "user_id": crew.owner.user_id}}
    headers = {"Authorization": f"Bearer {key}"}
    assert studio.client.post("/api/permissions/meta/data", json=ask, headers=headers).status_code == 200
    assert move(crew.owner, here.app, there.id).status == 200
    assert studio.client.post("/api/permissions/meta/data", json=ask, headers=headers).status_code == 401
    assert crew.owner.call("accessKey", action="get", application_id=here.app).data == []
    trail = studio.root.call("audit", data={"application_id": here.app, "operation": "access_key.delete"}).data
    assert [entry["project_id"] for entry in trail] == [here.id]
