"""POST /api/permissions/project/membership (§4.6)."""

import time
from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, Studio


def save(studio: Studio, project: str, **data: Any) -> ApiResponse:
    return studio.root.call("project/membership", action="save", data={"id": project, **data})


def get(studio: Studio, project: str) -> Any:
    return studio.root.call("project/membership", action="get", data={"id": project}).data


def member(user_id: Any, **roles: Any) -> dict[str, Any]:
    return {"user_id": user_id, "roles": roles}


@pytest.fixture(scope="module", autouse=True)
def users(studio: Studio) -> None:
    """Users without a login."""
    ids = ("7", "2000000", "3000000")
    studio.server.apply({"users": [{"user_id": user_id, "login": f"m{user_id}@example.com"} for user_id in ids]})


def test_membership_save_replaces_the_parts_that_it_contains(studio: Studio) -> None:
    project, keeper = studio.project(), studio.keeper.user_id
    app, group = studio.application(project), studio.group(project, keeper, tags=("project",))
    other = studio.group(project, tags=("project",))
    assert studio.root.call("application/tags", application_id=app, data={"tags": []}).status == 200
    end = int(time.time()) + 500
    users = [
        member("7", project=["viewer", {"name": "developer", "expired": end}]),
        member(keeper, project=["admin"]),
        member(
            "2000000", applications={str(app): ["app_admin"]}, services={str(app): [{"name": "srv_admin", "ttl": 9}]}
        ),
        member("3000000", groups={group: ["group_admin"]}),
    ]
    saved = save(studio, project, users=users, allow=[group], disallow=[])
    assert saved.body == {"status": "OK", "data": {"id": project, "users": users, "allow": [group], "disallow": []}}
    assert get(studio, project) == saved.data
    assert save(studio, project, disallow=[other, other]).data == saved.data | {"disallow": [other]}
    assert save(studio, project, users=users[1:2]).data["users"] == users[1:2]


def test_result_of_get_can_be_saved_again(studio: Studio) -> None:
    project = studio.project()
    shown = get(studio, project)
    assert save(studio, **{"project": shown.pop("id"), **shown}).body == {
        "status": "OK",
        "data": {"id": project, **shown},
    }


def test_roles_at_a_removed_application_or_deleted_group_end(studio: Studio) -> None:
    project = studio.project()
    app, group = studio.application(project), studio.group(project, tags=("project",))
    roles = {"applications": {str(app): ["viewer"]}, "groups": {group: ["group_admin"]}}
    keeper = member(studio.keeper.user_id, project=["admin"])
    assert save(studio, project, users=[member("7", **roles), keeper]).status == 200
    assert studio.root.call("application", action="delete", data={"application_id": app}).status == 200
    assert studio.root.call("group", action="delete", group_id=group, data={}).status == 200
    assert get(studio, project) == {"id": project, "users": [keeper], "allow": [], "disallow": []}


def test_membership_names_only_resources_of_its_project(studio: Studio) -> None:
    project, foreign = studio.project(), studio.project()
    app, other, removed = studio.application(project), studio.application(foreign), studio.application(project)
    assert studio.root.call("application", action="delete", data={"application_id": removed}).status == 200
    group, stranger = studio.group(project), studio.group(foreign, tags=("project",))
    before = get(studio, project)
    for roles in (
        {"applications": {str(other): ["viewer"]}},
        {"applications": {str(removed): ["viewer"]}},
        {"applications": {"1": ["viewer"]}},
        {"services": {str(app): ["viewer"]}},  # the application has no service_meta
        {"groups": {stranger: ["group_admin"]}},
        {"groups": {"0" * 24: ["group_admin"]}},
        {"project": ["missing"]},
        {"project": ["root"]},
    ):
        response = save(studio, project, users=[member("7", **roles)])
        assert (response.status, response.body["status"]) == (400, "ERROR"), roles
    for wrong in (stranger, "0" * 24, group, "x"):  # the group lacks the tag
        assert save(studio, project, allow=[wrong]).status == 400
        assert save(studio, project, disallow=[wrong]).status == 400
    assert get(studio, project) == before


def test_role_with_root_rules_cannot_be_given_in_a_project(studio: Studio) -> None:
    project = studio.project()
    studio.role(1, "creator", "can_create_projects")
    assert save(studio, project, users=[member("7", project=["creator"])]).status == 400
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": "creator"}).status == 200


@pytest.mark.parametrize("users", [None, [member("07")], [member("7", project="viewer")], [member("7"), member("7")]])
def test_membership_with_invalid_users_is_rejected(studio: Studio, unchanged_project: str, users: object) -> None:
    assert save(studio, unchanged_project, users=users).status == 400


def test_unknown_fields_are_named_in_warnings(studio: Studio) -> None:
    keeper = member(studio.keeper.user_id, project=["admin"])
    users = [{"user_id": "7", "roles": {"projekt": []}, "nick": "x"}, keeper]
    response = save(studio, studio.project(), users=users, deny=[])
    assert sorted(response.body["warnings"]) == [
        "deny: unknown field, ignored",
        "users[0].nick: unknown field, ignored",
        "users[0].roles.projekt: unknown field, ignored",
    ]


def test_allow_list_admits_only_its_groups_and_disallow_list_takes_precedence(studio: Studio) -> None:
    project = studio.project()
    inside, outside, both = studio.user(tags=["in"]), studio.user(), studio.user(tags=["in", "out"])
    keeper = studio.keeper.user_id
    allow = studio.group(project, keeper, tags=("project",), conditions=[{"title": "t", "condition": {"tag": "in"}}])
    disallow = studio.group(project, tags=("project",), conditions=[{"title": "t", "condition": {"tag": "out"}}])
    users = (inside, outside, both)
    for user in users:
        studio.join(project, user, project=["viewer"])

    def seen() -> list[int]:
        return [user.call("project", action="get", data={"id": project}).status for user in users]

    assert seen() == [200, 200, 200]
    save(studio, project, allow=[allow])
    assert seen() == [200, 403, 200]
    save(studio, project, disallow=[disallow])
    assert seen() == [200, 403, 403]
    save(studio, project, allow=[])
    assert seen() == [200, 200, 403]


def test_role_at_one_resource_is_valid_there_only(studio: Studio) -> None:
    project, ann = studio.project(), studio.user()
    app, other = studio.application(project), studio.application(project)
    studio.join(project, ann, applications={str(app): ["admin"]})
    rules = studio.rules_of(ann, 1)
    assert rules == [
        f"{project}/applications/{app}/app.can_ban_users",
        f"{project}/applications/{app}/app.can_manage_app_api_keys",
        f"{project}/applications/{app}/app.can_view_app",
    ]
    assert ann.call("accessKey", action="get", application_id=app).status == 200
    assert ann.call("accessKey", action="get", application_id=other).status == 403
    assert ann.call("project", action="get", data={"id": project}).status == 403


def test_expired_assignment_gives_no_rights(studio: Studio) -> None:
    project, ann = studio.project(), studio.user()
    studio.join(project, ann, project=[{"name": "viewer", "expired": int(time.time()) - 5}])
    assert ann.call("project", action="get", data={"id": project}).status == 403


def test_membership_of_thousands_fits_in_one_save(studio: Studio) -> None:
    """Other requests may have 10,000 values; a save of a membership lists every member of the project."""
    users = [{"user_id": str(number), "roles": {"project": ["viewer"]}} for number in range(1, 2501)]
    response = studio.root.call("project/membership", action="save", data={"id": "no_such_project", "users": users})
    assert (response.status, response.body["error"]) == (404, "project not found")
