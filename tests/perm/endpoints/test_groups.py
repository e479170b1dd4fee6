"""User groups: group, group/access, group/tags (§2.5, §4.7)."""

import re
from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, Studio


def access(studio: Studio, group: str, **data: Any) -> ApiResponse:
    return studio.root.call("group/access", group_id=group, data=data)


def groups(studio: Studio, project: str) -> Any:
    return studio.root.call("group", action="get", data={"project_id": project}).data


def test_group_save_get_and_delete_return_exact_responses(studio: Studio) -> None:
    project = studio.project()
    created = studio.root.call("group", action="save", data={"project_id": project, "title": "Test_ers 1"})
    group = created.data
    assert re.fullmatch(r"[0-9a-f]{24}", group["id"])
    assert created.body == {
        "status": "OK",
        "data": {
            "id": group["id"], "project_id": project, "title": "Test_ers 1", "description": "", "tags": [],
            "conditions": [], "users": [],
        },
    }  # fmt: skip
    changed = studio.root.call("group", action="save", group_id=group["id"], data={"description": "Words"})
    assert changed.data == group | {"description": "Words"}
    assert groups(studio, project) == {"groups": [changed.data], "max_users_cnt": 100}
    assert studio.root.call("group", action="delete", group_id=group["id"], data={}).body == {"status": "OK"}
    assert groups(studio, project) == {"groups": [], "max_users_cnt": 100}


def test_group_save_does_not_change_tags_or_access(studio: Studio) -> None:
    project = studio.project()
    condition = {"title": "beta", "condition": {"tag": "beta"}}
    group = studio.group(project, "7", tags=("project",), conditions=[condition])
    data = {"project_id": project, "title": "New", "tags": [], "users": [], "conditions": [], "colour": "red"}
    response = studio.root.call("group", action="save", group_id=group, data=data)
    assert (response.data["tags"], response.data["users"]) == (["project"], ["7"])
    assert response.data["conditions"] == [condition]
    assert response.body["warnings"] == ["colour: unknown field, ignored"]
    assert studio.root.call("group", action="save", group_id=group, data=response.data).data == response.data


def test_group_cannot_move_to_another_project(studio: Studio, unchanged_group: str) -> None:
    moved = {"project_id": studio.project(), "title": "x"}
    assert studio.root.call("group", action="save", group_id=unchanged_group, data=moved).status == 400


@pytest.mark.parametrize("title", ["", "a-b", 5])
def test_invalid_group_title_is_rejected(studio: Studio, unchanged_project: str, title: object) -> None:
    data = {"project_id": unchanged_project, "title": title}
    assert studio.root.call("group", action="save", data=data).status == 400


@pytest.mark.parametrize("group_id", [None, "A" * 24])
def test_group_id_must_be_24_hex_digits(studio: Studio, group_id: object) -> None:
    for path, body in (
        ("group", {"action": "save", "data": {"title": "x"}}),
        ("group", {"action": "delete", "data": {}}),
        ("group/access", {"data": {"users": []}}),
        ("group/tags", {"data": {"tags": []}}),
    ):
        assert studio.root.call(path, group_id=group_id, **body).status == 400


def test_missing_group_is_not_found_for_root_and_forbidden_for_others(studio: Studio) -> None:
    response = access(studio, "0" * 24, users=[])
    assert (response.status, response.body["error"]) == (404, "group not found")
    assert studio.user().call("group/access", group_id="0" * 24, data={"users": []}).status == 403


def test_group_access_returns_exactly_five_fields(studio: Studio) -> None:
    project = studio.project()
    group = studio.group(project)
    condition = {"title": "Beta players", "condition": {"or": [{"tag": "beta"}, {"uid": ["5"]}]}}
    response = access(studio, group, users=["9", "7", "9"], conditions=[condition])
    assert set(response.data) == {"id", "project_id", "title", "conditions", "users"}
    assert response.data["users"] == ["9", "7"]
    assert response.data["conditions"] == [condition]
    assert access(studio, group, users=[]).data == response.data | {"users": []}
    assert access(studio, group, conditions=[]).data == response.data | {"users": [], "conditions": []}


@pytest.mark.parametrize(
    "data",
    [
        {"users": ["07"]},
        {"conditions": [{"title": "x"}]},
        {"conditions": [{"title": "x", "condition": {"and": [{"or": [{"ip": "10.0.0.0/8"}]}]}}]},
    ],
)
def test_invalid_group_access_is_rejected_and_changes_nothing(
    studio: Studio, unchanged_project: str, unchanged_group: str, data: dict[str, Any]
) -> None:
    before = groups(studio, unchanged_project)
    assert access(studio, unchanged_group, **{"users": ["8"], **data}).status == 400
    assert groups(studio, unchanged_project) == before


def test_group_has_at_most_100_distinct_users(studio: Studio) -> None:
    group = studio.group(studio.project())
    many = [str(number) for number in range(1, 102)]
    assert access(studio, group, users=many[:100] * 2).status == 200
    response = access(studio, group, users=many)
    assert (response.status, response.body["status"]) == (400, "ERROR")
    assert len(access(studio, group).data["users"]) == 100


def test_group_members_are_listed_users_and_users_who_meet_a_condition(studio: Studio) -> None:
    project, ann = studio.project(), studio.user()
    app = studio.application(project)
    studio.role(app, "guard", "patrol")
    group = studio.group(project)
    actions = [{"group_id": group, "role": "guard", "action": "grant"}]
    settings = {"services": {str(app): {"groups": actions}}}
    assert studio.root.call("project", action="save", data={"id": project, "settings": settings}).status == 200
    conditions: tuple[tuple[dict[str, Any], bool], ...] = (
        ({}, False),
        ({"and": []}, False),
        ({"everyone": True}, True),
        ({"uid": []}, False),
        ({"domain": "example.com"}, True),
    )
    for condition, inside in conditions:
        assert access(studio, group, conditions=[{"title": "x", "condition": condition}]).status == 200
        assert studio.rules_of(ann, app) == (["patrol"] if inside else []), condition
    access(studio, group, conditions=[], users=[ann.user_id])
    assert studio.rules_of(ann, app) == ["patrol"]


def test_group_tags_are_set_by_the_tags_endpoint(studio: Studio) -> None:
    project = studio.project()
    group = studio.group(project)
    response = studio.root.call("group/tags", group_id=group, data={"tags": ["project", "a:b", "a:b"]})
    assert response.body == {"status": "OK", "data": groups(studio, project)["groups"][0]}
    assert response.data["tags"] == ["project", "a:b"]


@pytest.mark.parametrize("tags", [None, ["a-b"]])
def test_invalid_group_tags_are_rejected(studio: Studio, unchanged_group: str, tags: object) -> None:
    assert studio.root.call("group/tags", group_id=unchanged_group, data={"tags": tags}).status == 400


def test_group_in_an_allow_or_disallow_list_cannot_be_deleted_or_lose_its_tag(studio: Studio) -> None:
    """An allow list that becomes empty would open the project to all users."""
    project = studio.project()
    group = studio.group(project, studio.keeper.user_id, tags=("project",))
    for name in ("allow", "disallow"):
        if name == "disallow":  # an administrator must keep access
            assert studio.root.call("group/access", group_id=group, data={"users": []}).status == 409
            free = {"id": project, "allow": []}
            assert studio.root.call("project/membership", action="save", data=free).status == 200
            assert studio.root.call("group/access", group_id=group, data={"users": []}).status == 200
        lists = {"id": project, "allow": [], "disallow": [], name: [group]}
        assert studio.root.call("project/membership", action="save", data=lists).status == 200
        assert studio.root.call("group/tags", group_id=group, data={"tags": ["other"]}).status == 409
        assert studio.root.call("group", action="delete", group_id=group, data={}).status == 409
    free = {"id": project, "allow": [], "disallow": []}
    assert studio.root.call("project/membership", action="save", data=free).status == 200
    assert studio.root.call("group/tags", group_id=group, data={"tags": ["other"]}).status == 200
    assert studio.root.call("group", action="delete", group_id=group, data={}).status == 200


def test_deleted_group_is_removed_from_project_settings(studio: Studio) -> None:
    project = studio.project()
    app, group = studio.application(project), studio.group(project)
    studio.role(app, "guard", "patrol")
    settings = {"services": {str(app): {"groups": [{"group_id": group, "role": "guard", "action": "grant"}]}}}
    assert studio.root.call("project", action="save", data={"id": project, "settings": settings}).status == 200
    assert studio.root.call("group", action="delete", group_id=group, data={}).status == 200
    kept = studio.root.call("project", action="get", data={"id": project}).data["settings"]
    assert kept == {"services": {str(app): {"groups": []}}}


def test_groups_are_read_by_an_alias_of_their_project(studio: Studio) -> None:
    project = studio.project()
    group = studio.group(project)
    alias = f"{project}-too"
    assert studio.root.call("project", action="save", data={"id": project, "aliases": [alias]}).status == 200
    assert [item["id"] for item in groups(studio, alias)["groups"]] == [group]
    created = studio.root.call("group", action="save", data={"project_id": alias, "title": "x"})
    assert created.data["project_id"] == project
