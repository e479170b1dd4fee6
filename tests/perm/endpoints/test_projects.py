"""POST /api/permissions/project, /publish and /user/info (§2.4, §4.5, §4.6, §5.6)."""

import itertools
import re
from typing import Any

import pytest

from tests.kit.browser import query
from tests.kit.permission_calls import action, services
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, ApiUser, Studio

_numbers = itertools.count(1)


def title(text: str = "Title") -> str:
    return f"{text} {next(_numbers)}"


def project(user: ApiUser, action: str, project_id: object, **data: Any) -> ApiResponse:
    return user.call("project", action=action, data={"id": project_id, **data})


def test_publish_returns_the_project_and_creates_no_application(studio: Studio) -> None:
    author = studio.user()
    studio.give_rules(author, "can_create_projects")
    name = title("Red DAWN_x")
    response = author.call("publish", project=name)
    record = response.data
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.pop("created"))
    assert record == {
        "id": name.lower().replace(" ", "_"),
        "title": name,
        "description": "",
        "aliases": [],
        "tags": [],
        "settings": {},
        "author": author.user_id,
        "removed": False,
    }
    data = author.call("meta/data", action="get", application_id=1, data={}, options={"with_apps_data": True}).data
    assert data["apps"] == {record["id"]: []}


def test_project_get_and_save_return_the_record_and_delete_returns_no_data(studio: Studio) -> None:
    project_id = studio.project()
    record = project(studio.root, "get", project_id).data
    saved = project(studio.root, "save", project_id, title="Another 1", description="Words", settings={}).data
    assert saved == record | {"title": "Another 1", "description": "Words"}
    assert project(studio.root, "save", project_id, **{k: v for k, v in saved.items() if k != "id"}).data == saved
    assert project(studio.root, "delete", project_id).body == {"status": "OK"}
    assert project(studio.root, "get", project_id).data == saved | {"removed": True}
    project(studio.root, "save", project_id, title=title("Free"))


def test_project_save_ignores_read_only_fields_and_warns_about_unknown_ones(studio: Studio) -> None:
    project_id = studio.project()
    response = project(studio.root, "save", project_id, tags=["x"], author="5", created="x", removed=True, colour="red")
    assert response.data == project(studio.root, "get", project_id).data
    assert (response.data["removed"], response.data["tags"]) == (False, [])
    assert response.body["warnings"] == ["colour: unknown field, ignored"]
    assert project(studio.root, "get", project_id, colour="red").body["warnings"] == ["colour: unknown field, ignored"]


@pytest.mark.parametrize("wrong", ["GAME", "a-b", None])
def test_invalid_or_reserved_project_title_is_rejected(studio: Studio, unchanged_project: str, wrong: object) -> None:
    response = studio.root.call("publish", project=wrong)
    assert (response.status, response.body["status"]) == (400, "ERROR")
    assert project(studio.root, "save", unchanged_project, title=wrong).status == 400


def test_project_title_of_32_characters_is_accepted(studio: Studio) -> None:
    name = title().ljust(32, "x")
    assert studio.root.call("publish", project=name).data["title"] == name
    assert studio.root.call("publish", project="ga me").status in (200, 409)


def test_titles_with_the_same_project_id_are_a_conflict(studio: Studio) -> None:
    name = title("My Proj")
    assert studio.root.call("publish", project=name).status == 200
    for same in (name, name.lower(), name.upper(), name.replace(" ", "_")):
        response = studio.root.call("publish", project=same)
        assert (response.status, response.body["status"]) == (409, "ERROR")


def test_changed_title_with_a_taken_project_id_is_a_conflict(studio: Studio) -> None:
    first, second, new = title("First"), title("Second"), title("New")
    one = studio.root.call("publish", project=first).data["id"]
    two = studio.root.call("publish", project=second).data["id"]
    assert project(studio.root, "save", two, title=first.upper()).status == 409
    assert project(studio.root, "save", one, title=new).data["id"] == one
    assert studio.root.call("publish", project=new).status == 409
    assert studio.root.call("publish", project=first).status == 409
    assert project(studio.root, "get", new.lower().replace(" ", "_")).status == 404
    assert project(studio.root, "save", one, title=first).status == 200
    assert studio.root.call("publish", project=new).status == 200


def test_ids_and_aliases_share_one_namespace(studio: Studio) -> None:
    one, two = studio.project(), studio.project()
    alias = f"alias-{next(_numbers)}"
    assert project(studio.root, "save", one, aliases=[alias, alias]).data["aliases"] == [alias]
    assert project(studio.root, "get", alias).data["id"] == one
    assert project(studio.root, "save", two, aliases=[alias]).status == 409
    assert project(studio.root, "save", two, aliases=[one]).status == 409
    assert project(studio.root, "save", one, aliases=[one]).status == 400
    name = title("Aliased")
    assert project(studio.root, "save", one, aliases=[name.lower().replace(" ", "_")]).status == 200
    assert studio.root.call("publish", project=name).status == 409
    assert project(studio.root, "save", two, aliases=[alias]).status == 200
    assert project(studio.root, "get", alias).data["id"] == two


@pytest.mark.parametrize(
    "aliases",
    [["a.b"], ["game"], "x"],
)
def test_invalid_aliases_are_rejected(studio: Studio, unchanged_project: str, aliases: object) -> None:
    assert project(studio.root, "save", unchanged_project, aliases=aliases).status == 400


def test_project_has_at_most_20_aliases(studio: Studio) -> None:
    project_id = studio.project()
    many = [f"{project_id}-{n}" for n in range(21)]
    assert project(studio.root, "save", project_id, aliases=many).status == 400
    assert project(studio.root, "save", project_id, aliases=many[:20]).status == 200


def test_target_user_of_publish_needs_a_second_factor_other_than_email(studio: Studio) -> None:
    plain, by_mail = studio.user(), studio.user()
    studio.server.apply({"users": [{"login": by_mail.login, "email_2fa": True}]})
    safe, disabled = studio.user(second_factor=True), studio.user(second_factor=True)
    studio.server.sso("user", "disable", disabled.user_id)
    name = title("Target")
    for target, status in ((plain, 409), (by_mail, 409), (disabled, 404)):
        for name_or_id in (target.user_id, target.login):
            response = studio.root.call("publish", project=name, user=name_or_id)
            assert (response.status, response.body["status"]) == (status, "ERROR")
    assert studio.root.call("publish", project=name, user="missing@example.com").status == 404
    response = project(studio.root, "get", name.lower().replace(" ", "_"))
    assert response.status == 404
    assert studio.root.call("publish", project=name, user=safe.login.upper()).status == 200
    users = studio.root.call("project/membership", action="get", data={"id": name.lower().replace(" ", "_")}).data[
        "users"
    ]
    for looked_up, found in ((plain.user_id, True), ("missing@example.com", False)):  # who looked which login up
        query = {"operation": "user.lookup", "target": looked_up}
        headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
        entries = studio.client.get("/api/admin/audit", params=query, headers=headers).json()["data"]
        assert [(entry["user_id"], entry["after"]) for entry in entries] == [(studio.root.user_id, {"found": found})]
    admins = [{"user_id": user.user_id, "roles": {"project": ["admin"]}} for user in (studio.root, safe)]
    assert sorted(map(str, users)) == sorted(map(str, admins))


def test_passkey_of_the_target_user_of_publish_is_a_second_factor(studio: Studio) -> None:
    target = studio.user()
    query(studio.server, "UPDATE users SET passkey_count = 1 WHERE user_id = $1", target.user_id)
    assert studio.root.call("publish", project=title("Passkey"), user=target.user_id).status == 200


@pytest.mark.parametrize("user", [5, None, ""])
def test_target_user_of_publish_must_be_a_string(studio: Studio, user: object) -> None:
    assert studio.root.call("publish", project=title(), user=user).status == 400


@pytest.mark.parametrize(
    ("params", "limit"),
    [("1,2", 2), ("abc", 0), ("", 3)],
)
def test_parameter_of_can_create_projects_limits_the_projects_of_an_author(
    studio: Studio, params: str, limit: int
) -> None:
    ann = studio.user()
    studio.give_rules(ann, can_create_projects=params)
    done = [ann.call("publish", project=title("Limit")).status for _ in range(3)]
    assert done == [200] * limit + [409] * (3 - limit)


def test_highest_of_several_project_limits_applies(studio: Studio) -> None:
    ann = studio.user()
    for name, params in (("one", "1"), ("two", "2"), ("bad", "many"), ("free", "")):
        rule = {"can_create_projects": {"value": True, "params": params}}
        data = {"name": f"limit_{name}", "meta": {"private_data": rule}}
        assert studio.root.call("roles", action="save", application_id=1, data=data).status == 200
    studio.save_data(ann, 1, roles=["limit_one", "limit_two", "limit_bad"])
    assert [ann.call("publish", project=title("Several")).status for _ in range(3)] == [200, 200, 409]
    studio.save_data(ann, 1, roles=["limit_one", "limit_free"])
    assert ann.call("publish", project=title("Several")).status == 200
    for name in ("one", "two", "bad", "free"):
        data = {"name": f"limit_{name}"}
        assert studio.root.call("roles", action="delete", application_id=1, data=data).status == 200


def test_removed_projects_do_not_count_towards_the_project_limit(studio: Studio) -> None:
    ann = studio.user()
    studio.give_rules(ann, can_create_projects="1")
    project_id = ann.call("publish", project=title("Count")).data["id"]
    assert ann.call("user/info").body == {"status": "OK", "projects": 1}
    assert ann.call("publish", project=title("Count")).status == 409
    assert project(ann, "delete", project_id).status == 200
    assert ann.call("user/info").body == {"status": "OK", "projects": 0}
    assert ann.call("publish", project=title("Count")).status == 200


def test_removed_project_gives_no_rights(studio: Studio) -> None:
    member, author = studio.users(2)
    project_id = studio.project(member)
    app, group = studio.application(project_id), studio.group(project_id, author.user_id)
    studio.role(app, "guard", "patrol")
    project(studio.root, "save", project_id, settings=services(app, action(group, "guard")))
    assert project(studio.root, "delete", project_id).status == 200
    assert not any(line.startswith(f"{project_id}/") for line in studio.rules_of(member, 1))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("project", {"action": "save", "data": {"id": project_id, "description": "x"}}),
        ("project", {"action": "delete", "data": {"id": project_id}}),
        ("project/membership", {"action": "save", "data": {"id": project_id}}),
        ("group", {"action": "save", "data": {"project_id": project_id, "title": "x"}}),
        ("group", {"action": "save", "group_id": group, "data": {"title": "x"}}),
        ("group", {"action": "delete", "group_id": group, "data": {}}),
        ("group/access", {"group_id": group, "data": {"users": []}}),
        ("group/tags", {"group_id": group, "data": {"tags": []}}),
        ("application", {"action": "save", "data": {"application_id": app, "name": "x"}}),
        ("application", {"action": "save", "data": {"project_id": project_id, "name": "x"}}),
        ("roles", {"action": "save", "application_id": app, "data": {"name": "x"}}),
        ("meta/schema", {"action": "get", "application_id": app}),
        ("accessKey", {"action": "get", "application_id": app}),
        ("meta/data", {"action": "get", "application_id": app, "data": {}}),
    ]
    for path, body in calls:
        assert studio.root.call(path, **body).status == 403, (path, body)
        assert member.call(path, **body).status == 403, (path, body)
    assert member.call("group", action="get", data={"project_id": project_id}).data["groups"] == []
    assert project(member, "get", project_id).status == 403
    assert project(studio.root, "get", project_id).data["removed"] is True


def test_missing_project_is_not_found_for_root_and_forbidden_for_others(studio: Studio) -> None:
    ann = studio.user()
    for action_ in ("get", "save", "delete"):
        assert project(ann, action_, "no_such").body == project(ann, action_, studio.project()).body
        response = project(studio.root, action_, "no_such")
        assert (response.status, response.body["error"]) == (404, "project not found")


@pytest.mark.parametrize("project_id", [None, 5, "", "a.b"])
def test_invalid_project_id_is_rejected(studio: Studio, project_id: object) -> None:
    for path in ("project", "project/membership"):
        assert studio.root.call(path, action="get", data={"id": project_id}).status == 400


def test_invalid_input_is_rejected_before_the_authorization(studio: Studio) -> None:
    ann, project_id = studio.user(), studio.project()
    assert project(ann, "save", project_id, title=5).status == 400
    assert project(ann, "save", project_id, title="Fine").status == 403
    shapes: list[dict[str, Any]] = [{"users": {}}, {"users": [{"user_id": 5}]}, {"allow": "x"}, {"disallow": ["x"]}]
    for wrong in shapes:
        assert ann.call("project/membership", action="save", data={"id": project_id, **wrong}).status == 400
