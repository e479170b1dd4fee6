"""Groups of projects in the management API."""

from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.perm.endpoints.conftest import Studio

STAFF = [{"title": "Staff", "condition": {"tag": "staff"}}]


@pytest.fixture(scope="module")
def projects(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_projects")


def create(caller: Administrator, project_id: str, **fields: Any) -> dict[str, Any]:
    response = caller.request("POST", "/groups", json={"project_id": project_id, "title": "A group", **fields})
    assert response.status_code == 201, response.text
    group: dict[str, Any] = response.json()["data"]
    return group


def test_group_is_created_changed_and_deleted(studio: Studio, projects: Administrator) -> None:
    project_id, user = studio.project(), studio.user()
    created = create(projects, project_id, users=[user.user_id], conditions=STAFF, tags=["project"])
    path = f"/groups/{created['group_id']}"
    assert (created["users"], created["conditions"], created["tags"]) == ([user.user_id], STAFF, ["project"])
    body = {"title": "Another", "users": [], "tags": ["a", "b"]}
    changed = projects.request("PATCH", path, json=body)
    assert changed.json()["data"] == created | body
    assert projects.get(path).headers["ETag"] == changed.headers["ETag"]
    assert projects.request("DELETE", path).json() == {"status": "OK"}
    assert projects.get(path).status_code == 404
    assert projects.request("DELETE", path).status_code == 404


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"project_id": "x"}, "title: is required"),
        ({"title": "x"}, "project_id: is required"),
        ({"project_id": "x", "title": "x!"}, "title: must be 1 to 32"),
        ({"project_id": "x", "title": "x", "colour": 1}, "colour: is unknown"),
        ({"project_id": "x", "title": "x", "users": ["nobody"]}, "users[0]: must be a user id"),
        (
            {"project_id": "x", "title": "x", "conditions": [{"title": "x", "condition": {"ip": "10.0.0.0/8"}}]},
            "conditions[0].condition",
        ),
    ],
)
def test_invalid_group_is_refused_with_the_field(projects: Administrator, body: dict[str, Any], error: str) -> None:
    response = projects.request("POST", "/groups", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text


def test_change_is_made_as_a_whole_or_not_at_all(studio: Studio, projects: Administrator) -> None:
    project_id = studio.project()
    created = create(projects, project_id, tags=["project"])
    path = f"/groups/{created['group_id']}"
    project = f"/projects/{project_id}"
    assert projects.request("PATCH", project, json={"disallow": [created["group_id"]]}).status_code == 200
    refused = projects.request("PATCH", path, json={"title": "New", "tags": []})
    assert refused.status_code == 409
    assert projects.data(path) == created


def test_change_of_a_group_needs_the_current_version(studio: Studio, projects: Administrator) -> None:
    created = create(projects, studio.project())
    path = f"/groups/{created['group_id']}"
    tag = projects.get(path).headers["ETag"]
    assert projects.request("PATCH", path, {"If-Match": tag}, json={"title": "One"}).status_code == 200
    for method, options in (("PATCH", {"json": {"title": "Two"}}), ("DELETE", {})):
        assert projects.request(method, path, {"If-Match": tag}, **options).status_code == 412
    assert projects.data(path) == created | {"title": "One"}


def test_groups_are_paged_and_searched(studio: Studio, projects: Administrator) -> None:
    project_id = studio.project()
    ids = {create(projects, project_id, title=f"Team {number}")["group_id"] for number in range(5)}
    create(projects, project_id, title="Other")
    found = all_pages(projects, "/groups", limit=2, project_id=project_id, search="team")
    assert [group["group_id"] for group in found] == sorted(ids)


def test_manager_of_one_group_sees_and_changes_it_alone(studio: Studio) -> None:
    user = studio.user()
    project_id = studio.project()
    own, other = studio.group(project_id), studio.group(project_id)
    studio.role(1, "group_keeper", group={"can_manage_group": {"value": True}})
    studio.join(project_id, user, groups={own: ["group_keeper"]})
    caller = Administrator.of(user)
    assert [group["group_id"] for group in caller.data("/groups")] == [own]
    assert caller.request("PATCH", f"/groups/{own}", json={"conditions": STAFF}).status_code == 200
    refused = caller.request("PATCH", f"/groups/{own}", json={"title": "Mine", "users": []})
    assert (refused.status_code, "can_manage_groups" in refused.json()["error"]) == (403, True)
    assert caller.request("DELETE", f"/groups/{own}").status_code == 403
    requests: list[tuple[str, dict[str, Any]]] = [("GET", {}), ("PATCH", {"json": {"users": []}}), ("DELETE", {})]
    assert [group["group_id"] for group in caller.data("/groups", project_id=project_id)] == [own]
    for hidden in (studio.project(), "nowhere"):
        assert caller.get("/groups", project_id=hidden).status_code == 404
        # 404 if another test has made an application that everybody may see.
        assert caller.get("/applications", project_id=hidden).status_code in (403, 404)
    for method, options in requests:
        assert caller.request(method, f"/groups/{other}", **options).status_code == 404


def test_users_and_conditions_of_a_new_group_need_the_right_to_change_them(studio: Studio) -> None:
    user, project_id = studio.user(), studio.project()
    groups = {"can_view_project": {"value": True}, "can_manage_groups": {"value": True}}
    studio.role(1, "group_maker", project=groups)
    studio.join(project_id, user, project=["group_maker"])
    body = {"project_id": project_id, "title": "New"}
    caller = Administrator.of(user)
    for access in ({"users": [user.user_id]}, {"conditions": STAFF}):
        refused = caller.request("POST", "/groups", json=body | access)
        assert refused.status_code == 403
        assert refused.json()["error"].startswith("group.can_manage_group ")
    assert caller.request("POST", "/groups", json=body | {"users": [], "tags": ["project"]}).status_code == 201
    studio.join(project_id, user, project=["group_maker", "group_admin"])
    assert caller.request("POST", "/groups", json=body | {"users": [user.user_id]}).status_code == 201


def test_dry_run_of_a_group_shows_who_gains_and_changes_nothing(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    project_id = studio.project()
    application_id = studio.application(project_id)
    studio.role(application_id, "player", "play")
    group_id = studio.group(project_id)
    grant = {"services": {str(application_id): {"groups": [grant_of(group_id)]}}}
    assert root.request("PATCH", f"/projects/{project_id}", json={"settings": grant}).status_code == 200
    path = f"/groups/{group_id}"
    before = root.data(path)
    answer = root.request("PATCH", f"{path}?dry_run=1", json={"users": [user.user_id]}).json()
    assert [(item["user_id"], item["gained"]) for item in answer["users"]] == [(user.user_id, ["private_data.play"])]
    assert (answer["total"], root.data(path)) == (1, before)


def grant_of(group_id: str) -> dict[str, str]:
    return {"group_id": group_id, "role": "player", "action": "grant"}
