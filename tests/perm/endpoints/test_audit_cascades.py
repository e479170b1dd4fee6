"""Rights that end as a consequence of a change are recorded in the audit trail of every affected project."""

from typing import Any

import pytest

from tests.kit.permission_calls import audit
from tests.perm.endpoints.conftest import ApiUser, Studio


def entries(user: ApiUser, operation: str, **where: Any) -> Any:
    return audit(user, operation=operation, most=200, **where).data


def grant(studio: Studio, project: str, app: int, group: str, role: str) -> dict[str, Any]:
    action = {"group_id": group, "role": role, "action": "grant"}
    services = {str(app): {"groups": [action]}}
    data = {"id": project, "settings": {"services": services}}
    assert studio.root.call("project", action="save", data=data).status == 200
    return services


@pytest.fixture
def project(studio: Studio) -> str:
    return studio.project()


def test_assignments_and_grants_that_end_with_a_role_are_recorded(studio: Studio, project: str) -> None:
    app, (ann, bob) = studio.application(project), studio.users(2)
    studio.role(app, "guard", "patrol")
    studio.save_data(ann, app, roles=["guard"])
    studio.save_data(bob, app, roles=[{"name": "guard", "ttl": 60}])
    services = grant(studio, project, app, studio.group(project), "guard")
    assert studio.root.call("roles", action="delete", application_id=app, data={"name": "guard"}).status == 200
    (lost,) = entries(studio.root, "permissions.cascade", project_id=project)
    assert (lost["target"], lost["user_id"]) == (f"{app}/guard", studio.root.user_id)
    assert {item["user_id"]: item["ttl"] for item in lost["before"]["roles"]} == {ann.user_id: 0, bob.user_id: 60}
    assert lost["after"] == {"roles": [], "cause": f"role.delete {app}/guard"}
    (granted,) = entries(studio.root, "project.cascade", project_id=project)
    assert granted["before"] == {"services": services}
    assert granted["after"] == {"services": {str(app): {"groups": []}}, "cause": f"role.delete {app}/guard"}


def test_memberships_that_end_with_a_generic_role_are_recorded_in_every_project(studio: Studio, project: str) -> None:
    name, other, ann = f"helper_{project}", studio.project(), studio.user()
    meta = {"private_data": {"project": {"can_view_project": {"value": True}}}}
    role = {"name": name, "meta": meta}
    assert studio.root.call("roles", action="save", application_id=1, data=role).status == 200
    for joined in (project, other):
        studio.join(joined, ann, project=[name])
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": name}).status == 200
    for joined in (project, other):
        (entry,) = entries(studio.root, "membership.cascade", project_id=joined)
        assert entry["before"] == {
            "users": [{"user_id": ann.user_id, "level": "project", "resource": "", "role": name}]
        }
        assert entry["after"]["cause"] == f"role.delete 1/{name}"


def test_role_that_becomes_protected_records_the_grants_that_end(studio: Studio, project: str) -> None:
    app = studio.application(project)
    studio.role(app, "guard", "patrol")
    grant(studio, project, app, studio.group(project), "guard")
    studio.role(app, "guard", "patrol", protected=True)
    (entry,) = entries(studio.root, "project.cascade", project_id=project)
    assert entry["after"] == {"services": {str(app): {"groups": []}}, "cause": f"role.save {app}/guard"}


def test_move_of_an_application_is_recorded_in_both_projects(studio: Studio, project: str) -> None:
    owner, ann = studio.users(2)
    target = studio.project(owner)
    app = studio.application(project)
    studio.role(app, "guard", "patrol")
    studio.join(project, ann, applications={str(app): ["app_admin"]})
    grant(studio, project, app, studio.group(project), "guard")
    move = {"application_id": app, "project_id": target}
    assert studio.root.call("application", action="save", data=move).status == 200
    (left,) = entries(studio.root, "application.move", project_id=project)
    assert (left["before"]["project_id"], left["after"]["project_id"]) == (project, target)
    (member,) = entries(studio.root, "membership.cascade", project_id=project)
    assert member["before"]["users"] == [
        {"user_id": ann.user_id, "level": "applications", "resource": str(app), "role": "app_admin"}
    ]
    (granted,) = entries(studio.root, "project.cascade", project_id=project)
    assert granted["after"] == {"services": {}, "cause": f"application.save {app}"}
    (joined,) = entries(owner, "application.save", project_id=target)
    assert joined["target"] == str(app)
    assert entries(owner, "membership.cascade", project_id=target) == []


def test_removed_application_and_deleted_group_record_the_rights_that_end(studio: Studio, project: str) -> None:
    app, ann, group = studio.application(project), studio.user(), studio.group(project)
    studio.role(app, "guard", "patrol")
    studio.join(project, ann, applications={str(app): ["app_admin"]}, groups={group: ["group_admin"]})
    grant(studio, project, app, group, "guard")
    assert studio.root.call("group", action="delete", group_id=group, data={}).status == 200
    (settings,) = entries(studio.root, "project.cascade", project_id=project)
    assert settings["after"]["cause"] == f"group.delete {group}"
    (member,) = entries(studio.root, "membership.cascade", project_id=project)
    assert member["before"]["users"][0]["resource"] == group
    assert studio.root.call("application", action="delete", data={"application_id": app}).status == 200
    causes = [e["after"]["cause"] for e in entries(studio.root, "membership.cascade", project_id=project)]
    assert causes == [f"application.delete {app}", f"group.delete {group}"]


def test_assignments_of_others_are_hidden_from_readers_who_may_not_read_roles(studio: Studio) -> None:
    manager = studio.user()
    project = studio.project(manager)
    app = studio.application(project)
    studio.role(app, manager.user_id, "x")  # a role with the id of the reader as name
    studio.save_data(studio.user(), app, roles=[manager.user_id])
    data = {"name": manager.user_id}
    assert studio.root.call("roles", action="delete", application_id=app, data=data).status == 200
    (entry,) = entries(manager, "permissions.cascade", project_id=project)
    assert (entry["before"], entry["hidden"]) == ({}, ["roles"])


def test_change_without_consequences_writes_no_cascade_entry(studio: Studio, project: str) -> None:
    app, group = studio.application(project), studio.group(project)
    studio.role(app, "guard", "patrol")
    assert studio.root.call("roles", action="delete", application_id=app, data={"name": "guard"}).status == 200
    assert studio.root.call("group", action="delete", group_id=group, data={}).status == 200
    assert studio.root.call("application", action="delete", data={"application_id": app}).status == 200
    trail = audit(studio.root, project_id=project, most=200).data
    assert not [entry for entry in trail if entry["operation"].endswith(".cascade")]
