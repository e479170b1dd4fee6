"""``options.dry_run`` on the write endpoints: who would gain and lose which permissions."""

from typing import Any

import pytest

from tests.kit.permission_changes import CHAT, People, assign, chat, role
from tests.perm.changes.conftest import Trial, changes_of, dump
from tests.perm.endpoints.conftest import Studio


@pytest.fixture
def app(studio: Studio) -> int:
    return studio.application(**CHAT)


@pytest.fixture
def trial(studio: Studio, people: People, app: int) -> Trial:
    return Trial(studio, people, (app,))


def test_role_save_shows_what_its_holders_gain_and_lose(trial: Trial, people: People, app: int) -> None:
    ann, bob, *_ = people
    trial.check("roles", **role(trial, "mod", meta=chat(mute=True)))
    assign(trial, ann, "mod")
    assign(trial, bob, "mod")
    body = trial.dry_run("roles", **role(trial, "mod", meta=chat(kick="eu,us")))
    entry = {"gained": ["private_data.chat.kick|eu,us"], "lost": ["private_data.chat.mute"]}
    assert body == {
        "status": "OK",
        "dry_run": True,
        "users": [{"user_id": user.user_id, **entry} for user in (ann, bob)],
        "total": 2,
        "exact": True,
        "warnings": [],
        "failed_assertions": [],
    }
    assert len(trial.check("roles", **role(trial, "mod", meta=chat(kick="eu,us")))) == 2
    assert trial.check("roles", **role(trial, "mod", description="Same rules")) == {}
    assert len(trial.check("roles", action="delete", application_id=app, data={"name": "mod"})) == 2


def test_dry_run_changes_nothing(studio: Studio, trial: Trial, people: People, app: int) -> None:
    trial.check("roles", **role(trial, "mod", meta=chat(mute=True)))
    assign(trial, people[0], "mod")
    project = studio.project()
    before = dump(studio)
    trial.dry_run("roles", **role(trial, "mod", meta=chat(kick=True)))
    trial.dry_run("roles", action="delete", application_id=app, data={"name": "mod"})
    trial.dry_run("meta/schema", action="save", application_id=app, data={"private_data": {}})
    trial.dry_run("application", action="save", data={"application_id": app, "name": "Renamed"})
    trial.dry_run("application", action="save", data={"name": "New", "project_id": project})
    trial.dry_run("application", action="delete", data={"application_id": app})
    trial.dry_run("application/tags", application_id=app, data={"tags": ["a"]})
    trial.dry_run("meta/data", action="save", application_id=app, data={"user_id": people[1].user_id, "roles": ["mod"]})
    trial.dry_run("project", action="save", data={"id": project, "description": "New"})
    trial.dry_run("project", action="delete", data={"id": project})
    trial.dry_run("publish", project="Never There")
    trial.dry_run("project/membership", action="save", data={"id": project, "disallow": []})
    trial.dry_run("group", action="save", data={"project_id": project, "title": "Never"})
    assert dump(studio) == before


def test_dry_run_of_a_group_changes_nothing(studio: Studio, trial: Trial, people: People) -> None:
    group = studio.group(studio.project(), people[0].user_id)
    before = dump(studio)
    trial.dry_run("group/access", group_id=group, data={"users": []})
    trial.dry_run("group/tags", group_id=group, data={"tags": ["project"]})
    trial.dry_run("group", action="save", group_id=group, data={"title": "Other"})
    trial.dry_run("group", action="delete", group_id=group)
    assert dump(studio) == before


def test_conditional_and_default_roles(trial: Trial, people: People) -> None:
    ann, bob, cat, _ = people
    app = trial.applications[0]
    gained = trial.check("roles", **role(trial, "vips", meta=chat(mute=True), condition={"tag": "changes_vip"}))
    assert set(gained) == {(ann.user_id, app), (cat.user_id, app)}
    moved = trial.check("roles", **role(trial, "vips", condition={"uid": [bob.user_id, cat.user_id]}))
    assert set(moved) == {(ann.user_id, app), (bob.user_id, app)}
    assert len(trial.check("roles", **role(trial, "vips", condition={"domain": "CHANGES.example"}))) == 2
    assert trial.check("roles", **role(trial, "vips", condition={"everyone": True})) == {}
    assert trial.check("roles", **role(trial, "vips", default=True)) == {}
    assert len(trial.check("roles", **role(trial, "vips", default=False, condition={"tag": "changes_beta"}))) == 3


def test_conditions_on_the_address_count_as_not_met(trial: Trial, people: People) -> None:
    trial.check("roles", **role(trial, "local", meta=chat(mute=True), condition={"tag": "changes_beta"}))
    body = trial.dry_run("roles", **role(trial, "local", condition={"tag": "changes_beta", "ip": "0.0.0.0/0"}))
    assert [user["user_id"] for user in body["users"]] == [people[2].user_id]


def test_schema_save_that_gives_a_rule_to_everyone(trial: Trial, people: People, app: int) -> None:
    schema = {"private_data": {"chat": {"kick": {"value": False}, "read": {"value": True}}}}
    gained = trial.check("meta/schema", action="save", application_id=app, data=schema)
    assert set(gained) == {(user.user_id, app) for user in people}
    assert set(map(str, gained.values())) == {"(['private_data.chat.read'], [])"}
    with_role = schema | {"roles": {"reader": {"meta": chat(read=False), "default": True}}}
    assert len(trial.check("meta/schema", action="save", application_id=app, data=with_role)) == 4


def test_user_data_save(trial: Trial, people: People, app: int) -> None:
    trial.check("roles", **role(trial, "mod", meta=chat(mute="a")))
    data = {"user_id": people[1].user_id, "roles": ["mod"], "private_data": {"chat": {"ban": {"value": True}}}}
    changed = trial.check("meta/data", action="save", application_id=app, data=data)
    assert changed == {(people[1].user_id, app): (["private_data.chat.ban", "private_data.chat.mute|a"], [])}
    again = trial.dry_run("meta/data", action="save", application_id=app, data=data)
    assert (again["users"], again["total"]) == ([], 0)


def test_rules_that_the_schema_does_not_declare_are_warnings(trial: Trial, app: int) -> None:
    body = role(trial, "mod", meta={"private_data": {"chat": {"kick": {"value": True}, "shout": {"value": True}}}})
    text = "roles: mod gives private_data.chat.shout, which the schema does not declare"
    assert trial.dry_run("roles", **body)["warnings"] == [text]
    assert trial.studio.root.call("roles", **body).body["warnings"] == [text]
    schema = {"private_data": {"chat": {"shout": {"value": False}}}}
    warnings = trial.dry_run("meta/schema", action="save", application_id=app, data=schema)["warnings"]
    assert warnings == ["roles: mod gives private_data.chat.kick, which the schema does not declare"]


def test_groups_memberships_and_projects(studio: Studio, people: People) -> None:
    ann, bob, cat, dan = people
    project = studio.project(dan)
    app = studio.application(project, **CHAT)
    trial = Trial(studio, people, (app, 1))
    trial.check("roles", **role(trial, "mod", meta=chat(mute=True)))
    group = studio.group(project, ann.user_id, tags=("project",))
    services = {str(app): {"groups": [{"group_id": group, "role": "mod", "action": "grant"}]}}
    granted = trial.check("project", action="save", data={"id": project, "settings": {"services": services}})
    assert set(granted) == {(ann.user_id, app)}
    conditions = [{"title": "VIP", "condition": {"tag": "changes_beta"}}]
    moved = trial.check("group/access", group_id=group, data={"users": [bob.user_id], "conditions": conditions})
    assert set(moved) == {(ann.user_id, app), (bob.user_id, app), (cat.user_id, app)}
    members = [
        {"user_id": dan.user_id, "roles": {"project": ["admin"]}},
        {"user_id": ann.user_id, "roles": {"applications": {str(app): ["app_admin"]}}},
    ]
    joined = trial.check("project/membership", action="save", data={"id": project, "users": members})
    assert set(joined) == {(ann.user_id, 1)}
    assert all(entry.startswith(f"private_data.projectAccess.{project}.") for entry in joined[ann.user_id, 1][0])
    other = studio.group(project, cat.user_id, dan.user_id, tags=("project",))
    allowed = trial.check("project/membership", action="save", data={"id": project, "allow": [other]})
    assert set(allowed) == {(ann.user_id, 1), (bob.user_id, app)}
    trial.check("project/membership", action="save", data={"id": project, "allow": []})
    created = trial.dry_run("application", action="save", data={"name": "Second", "project_id": project})
    assert [user["user_id"] for user in created["users"]] == [dan.user_id]
    lost = trial.check("group", action="delete", group_id=group)
    assert {(bob.user_id, app), (cat.user_id, app), (dan.user_id, 1)} <= set(lost)
    assign(trial, bob, "mod")
    removed = trial.check("application", action="delete", data={"application_id": app})
    assert {(bob.user_id, app), (ann.user_id, 1), (dan.user_id, 1)} <= set(removed)


def test_removal_of_a_project_ends_all_permissions_there(studio: Studio, people: People) -> None:
    project = studio.project(people[3])
    app = studio.application(project, **CHAT)
    trial = Trial(studio, people, (app, 1))
    trial.check("roles", **role(trial, "mod", meta=chat(mute=True)))
    assign(trial, people[0], "mod")
    removed = trial.check("project", action="delete", data={"id": project})
    assert set(removed) == {(people[0].user_id, app), (people[3].user_id, 1)}


def test_generic_role_that_becomes_protected_leaves_memberships(studio: Studio, people: People) -> None:
    studio.role(1, "guide", project={"can_view_project": {"value": True}})
    project = studio.project(people[3])
    studio.join(project, people[0], project=["guide"])
    trial = Trial(studio, people, (1,))
    body = {"action": "save", "application_id": 1, "data": {"name": "guide", "protected": True}}
    assert set(trial.check("roles", **body)) == {(people[0].user_id, 1)}
    studio.root.call("roles", action="delete", application_id=1, data={"name": "guide"})


@pytest.mark.parametrize("value", [1, "true", None, [True]])
def test_dry_run_must_be_a_boolean(trial: Trial, value: Any) -> None:
    response = trial.studio.root.call("roles", **role(trial, "mod"), options={"dry_run": value})
    assert (response.status, response.body["error"]) == (400, "options.dry_run: must be true or false")


def test_dry_run_needs_the_rights_of_the_write(studio: Studio, trial: Trial, people: People) -> None:
    response = people[0].call("roles", **role(trial, "mod"), options={"dry_run": True})
    assert response.status == 403


def test_dry_run_hides_permissions_that_the_caller_may_not_read(
    studio: Studio, trial: Trial, people: People, app: int
) -> None:
    ann, bob, *_ = people
    trial.check("roles", **role(trial, "mod", meta=chat(mute=True)))
    assign(trial, ann, "mod")
    assign(trial, bob, "mod")
    editor = studio.user()
    studio.give_secret(editor, app, "canModifySchema")
    change = role(trial, "mod", meta=chat(kick=True) | {"public_data": {"badge": {"value": True}}})
    body = trial.dry_run("roles", editor, **change)
    assert body["total"] == 2
    assert set(map(str, changes_of(body, [app]).values())) == {"(['public_data.badge'], [])"}
    hidden = trial.dry_run("roles", editor, **role(trial, "mod", meta=chat(kick=True)))
    assert (hidden["users"], hidden["total"]) == ([], 0)
    assert hidden["warnings"] == ["users whose permissions you may not read are neither shown nor counted"]
    changes_nothing = trial.dry_run("roles", editor, **role(trial, "mod", meta=chat(mute=True)))
    assert changes_nothing == hidden
    studio.give_secret(editor, app, "canModifySchema", private={"canRead": "all"})
    assert len(trial.dry_run("roles", editor, **role(trial, "mod", meta=chat(kick=True)))["users"]) == 2


def test_dry_run_does_not_tell_attributes_of_users(studio: Studio, trial: Trial, people: People, app: int) -> None:
    """The same answer whether or not the condition of a role holds for a user."""
    editor = studio.user()
    studio.give_secret(editor, app, "canModifySchema")
    answers = [
        trial.dry_run("roles", editor, **role(trial, "probe", meta=chat(kick=True), condition=condition))
        for tag in ("changes_vip", "changes_no_such_tag")
        for condition in ({"tag": tag}, {"uid": [people[0].user_id], "tag": tag})
    ]
    assert answers[0]["total"] == 0
    assert answers == answers[:1] * 4


def test_dry_run_creates_and_deletes_no_access_key(studio: Studio, trial: Trial, app: int) -> None:
    key = studio.root.call("accessKey", action="save", application_id=app, data={"comment": "kept"}).data["id"]
    before = dump(studio)
    created = trial.dry_run("accessKey", action="save", application_id=app, data={"comment": "never"})
    assert "data" not in created
    trial.dry_run("accessKey", action="delete", application_id=app, data={"id": key})
    assert dump(studio) == before
