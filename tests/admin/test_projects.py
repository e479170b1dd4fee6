"""Projects and their members in the management API."""

import itertools
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.perm.endpoints.conftest import Studio

_numbers = itertools.count(1)
VIEWER = {"project": ["viewer"]}


def new_title() -> str:
    return f"Managed project {next(_numbers)}"


def create(caller: Administrator, **fields: Any) -> dict[str, Any]:
    response = caller.request("POST", "/projects", json={"title": new_title(), **fields})
    assert response.status_code == 201, response.text
    project: dict[str, Any] = response.json()["data"]
    return project


@pytest.fixture(scope="module")
def projects(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_projects")


@pytest.fixture(scope="module")
def viewer(studio: Studio) -> Administrator:
    return administrator(studio, "can_view_projects")


def test_project_is_created_changed_and_removed(studio: Studio, projects: Administrator) -> None:
    admin = studio.user()
    title = new_title()
    settings = {"allowed_domains": ["example.com"]}
    created = create(projects, title=title, description="One", settings=settings, admins=[admin.login])
    path = f"/projects/{created['id']}"
    assert (created["title"], created["settings"], created["author"]) == (title, settings, projects.user_id)
    assert projects.data(f"{path}/members") == [{"user_id": admin.user_id, "roles": {"project": ["admin"]}}]
    changed = projects.request("PATCH", path, json={"description": "Two", "aliases": [f"{created['id']}_alias"]})
    assert changed.json()["data"] == created | {"description": "Two", "aliases": [f"{created['id']}_alias"]}
    assert projects.get(path).headers["ETag"] == changed.headers["ETag"]
    named = projects.request("PATCH", path, json={"display_name": "Märchen: 夜"}).json()["data"]
    assert named == changed.json()["data"] | {"display_name": "Märchen: 夜"}
    assert [item["id"] for item in projects.data("/projects", search="märchen")] == [created["id"]]
    record = studio.root.call("project", action="get", data={"id": created["id"]}).data
    assert "display_name" not in record  # the specification names the fields of this record
    removed = projects.request("DELETE", path)
    assert (removed.status_code, removed.json()["data"]["removed"]) == (200, True)
    assert projects.data("/projects", search=title) == []
    assert [item["id"] for item in projects.data("/projects", search=title, removed=1)] == [created["id"]]


def test_author_is_the_administrator_of_a_project_without_others(projects: Administrator) -> None:
    created = create(projects)
    assert projects.data(f"/projects/{created['id']}/members") == [
        {"user_id": projects.user_id, "roles": {"project": ["admin"]}}
    ]


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({}, 400, "title: is required"),
        ({"title": "x!"}, 400, "title: must be 1 to 32"),
        ({"title": "x", "display_name": "a" * 101}, 400, "display_name: must be a text of at most 100"),
        ({"title": "x", "display_name": "a\u202eb"}, 400, "display_name: must not contain control"),
        ({"title": "x", "display_name": "a\nb"}, 400, "display_name: must not contain control"),
        ({"title": "x", "display_name": "\u200d"}, 400, "display_name: must contain a character"),
        ({"title": "Game"}, 400, "title: this title is reserved"),
        ({"title": "x", "colour": "red"}, 400, "colour: is unknown"),
        ({"title": "x", "settings": {"services": {"10": {"groups": []}}}}, 400, "settings.services: a new project"),
        ({"title": "x", "admins": ["nobody@nowhere.example"]}, 404, "admins[0]: user not found"),
    ],
)
def test_invalid_project_is_refused_with_the_field(
    projects: Administrator, body: dict[str, Any], status: int, error: str
) -> None:
    response = projects.request("POST", "/projects", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (status, True), response.text


def test_taken_title_is_a_conflict(projects: Administrator) -> None:
    created = create(projects)
    assert projects.request("POST", "/projects", json={"title": created["title"].upper()}).status_code == 409


def test_change_of_a_project_needs_the_current_version(projects: Administrator) -> None:
    created = create(projects)
    path = f"/projects/{created['id']}"
    tag = projects.get(path).headers["ETag"]
    assert projects.request("PATCH", path, {"If-Match": tag}, json={"description": "One"}).status_code == 200
    for method, options in (("PATCH", {"json": {"description": "Two"}}), ("DELETE", {})):
        assert projects.request(method, path, {"If-Match": tag}, **options).status_code == 412
    assert projects.data(path) == created | {"description": "One"}


def test_projects_are_paged_and_searched(viewer: Administrator, projects: Administrator) -> None:
    title = f"Paged {next(_numbers)}"
    ids = [create(projects, title=f"{title} {number}")["id"] for number in range(5)]
    found = all_pages(viewer, "/projects", limit=2, search=title.upper())
    assert [project["id"] for project in found] == ids


def test_lists_of_groups_are_fields_of_the_project(studio: Studio, projects: Administrator) -> None:
    project_id = create(projects)["id"]
    group_id = studio.group(project_id, projects.user_id, tags=("project",))
    path = f"/projects/{project_id}"
    body = {"allow": [group_id], "description": "open to a group"}
    assert projects.request("PATCH", path, json=body).json()["data"]["allow"] == [group_id]
    body = {"allow": ["0" * 24], "description": "not saved"}
    assert projects.request("PATCH", path, json=body).status_code == 400
    project = projects.data(path)
    assert (project["allow"], project["description"]) == ([group_id], "open to a group")


def test_members_of_a_project_see_it_alone(studio: Studio) -> None:
    user, outsider = studio.user(), studio.user()
    own, other = studio.project(user), studio.project()
    caller = Administrator.of(user)
    assert [project["id"] for project in caller.data("/projects")] == [own]
    assert caller.request("PATCH", f"/projects/{own}", json={"description": "x"}).status_code == 200
    for method, path, options in (
        ("GET", "", {}),
        ("PATCH", "", {"json": {"description": "x"}}),
        ("DELETE", "", {}),
        ("GET", "/members", {}),
        ("POST", "/members", {"json": {"user_id": outsider.user_id, "roles": VIEWER}}),
        ("DELETE", f"/members/{studio.keeper.user_id}", {}),
    ):
        assert caller.request(method, f"/projects/{other}{path}", **options).status_code == 404, (method, path)
    viewer = studio.user()
    studio.join(own, viewer, project=["viewer"])
    refused = Administrator.of(viewer).request("PATCH", f"/projects/{own}", json={"description": "y"})
    assert (refused.status_code, "project.can_manage_project" in refused.json()["error"]) == (403, True)


def test_creating_projects_follows_the_quota_of_the_caller(studio: Studio) -> None:
    user = studio.user()
    studio.give_rules(user, can_create_projects="1")
    caller = Administrator.of(user)
    admin = studio.user()
    without_factor = caller.request("POST", "/projects", json={"title": new_title(), "admins": [admin.user_id]})
    assert (without_factor.status_code, "second factor" in without_factor.json()["error"]) == (409, True)
    created = create(caller)
    assert [member["user_id"] for member in caller.data(f"/projects/{created['id']}/members")] == [user.user_id]
    assert caller.request("POST", "/projects", json={"title": new_title()}).status_code == 409


def test_member_is_added_changed_and_removed(studio: Studio, projects: Administrator) -> None:
    user = studio.user()
    path = f"/projects/{create(projects)['id']}/members"
    body = {"user_id": user.user_id, "roles": VIEWER}
    added = projects.request("POST", path, json=body)
    assert (added.status_code, added.json()["data"]) == (201, body)
    assert projects.request("POST", path, json=body).status_code == 409
    member = f"{path}/{user.user_id}"
    tag = projects.get(member).headers["ETag"]
    assert tag == added.headers["ETag"]
    roles = {"project": [{"name": "viewer", "expired": 4102444800}]}
    changed = projects.request("PATCH", member, {"If-Match": tag}, json={"roles": roles})
    assert changed.json()["data"] == {"user_id": user.user_id, "roles": roles}
    for method, options in (("PATCH", {"json": {"roles": VIEWER}}), ("DELETE", {})):
        assert projects.request(method, member, {"If-Match": tag}, **options).status_code == 412
    assert projects.request("DELETE", member).status_code == 200
    assert projects.get(member).status_code == 404
    assert projects.request("DELETE", member).status_code == 404
    assert projects.request("PATCH", member, json={"roles": VIEWER}).status_code == 404


@pytest.mark.parametrize(
    ("roles", "error"),
    [
        ({}, "roles: must have a role"),
        ({"project": ["nobody"]}, "roles.project[0]: there is no role nobody"),
        ({"project": ["root"]}, "roles.project: root is protected"),
        ({"applications": {"10": ["viewer"]}}, "roles.applications.10: does not belong"),
        ({"project": "viewer"}, "roles.project: must be an array"),
    ],
)
def test_invalid_roles_of_a_member_are_refused_with_the_field(
    studio: Studio, projects: Administrator, roles: Any, error: str
) -> None:
    path = f"/projects/{create(projects)['id']}/members"
    response = projects.request("POST", path, json={"user_id": studio.root.user_id, "roles": roles})
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text
    assert len(projects.data(path)) == 1


def test_member_is_added_by_another_name_of_the_project(studio: Studio, projects: Administrator) -> None:
    first, second = studio.user(), studio.user()
    project_id = create(projects)["id"]
    other = project_id.replace("_", "-").upper()
    path = f"/projects/{project_id}/members"
    body = {"user_id": first.user_id, "roles": {"project": ["admin"]}}
    assert projects.request("POST", path, json=body).status_code == 201
    answer = projects.request("POST", f"/projects/{other}/members", json={"user_id": first.user_id, "roles": VIEWER})
    assert (answer.status_code, answer.json()["error"]) == (409, "user_id: is a member of the project")
    assert projects.data(f"{path}/{first.user_id}")["roles"] == {"project": ["admin"]}
    added = projects.request("POST", f"/projects/{other}/members", json={"user_id": second.user_id, "roles": VIEWER})
    assert (added.status_code, projects.get(f"{path}/{second.user_id}").status_code) == (201, 200)


def test_unknown_user_cannot_be_a_member(projects: Administrator) -> None:
    path = f"/projects/{create(projects)['id']}/members"
    for user_id in ("999999999999", "x"):
        assert projects.request("POST", path, json={"user_id": user_id, "roles": VIEWER}).status_code == 400


def test_members_are_paged(studio: Studio, root: Administrator, viewer: Administrator) -> None:
    project_id = studio.project()
    users = sorted([studio.keeper.user_id, *(studio.user().user_id for _ in range(4))])
    for user_id in users:
        root.request("POST", f"/projects/{project_id}/members", json={"user_id": user_id, "roles": VIEWER})
    found = all_pages(viewer, f"/projects/{project_id}/members", limit=2)
    assert [member["user_id"] for member in found] == users


def test_last_administrator_stays(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    path = f"/projects/{studio.project(user)}/members/{user.user_id}"
    requests: list[tuple[str, dict[str, Any]]] = [("DELETE", {}), ("PATCH", {"json": {"roles": VIEWER}})]
    for method, options in requests:
        response = root.request(method, path, **options)
        assert (response.status_code, "administrator" in response.json()["error"]) == (409, True)


def test_dry_run_of_a_membership_shows_who_gains_and_changes_nothing(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    project_id = studio.project()
    path = f"/projects/{project_id}/members"
    before = root.data(path)
    answer = root.request("POST", f"{path}?dry_run=1", json={"user_id": user.user_id, "roles": VIEWER}).json()
    (affected,) = answer["users"]
    rule = f"private_data.projectAccess.{project_id}.private_data.project.can_view_project"
    assert (affected["user_id"], rule in affected["gained"], affected["lost"]) == (user.user_id, True, [])
    assert root.data(path) == before


def test_dry_run_shows_managers_of_projects_who_gains(studio: Studio, projects: Administrator) -> None:
    user = studio.user()
    path = f"/projects/{studio.project()}/members?dry_run=1"
    answer = projects.request("POST", path, json={"user_id": user.user_id, "roles": VIEWER}).json()
    assert [item["user_id"] for item in answer["users"]] == [user.user_id]


def test_change_of_a_member_is_audited_with_before_and_after(studio: Studio, projects: Administrator) -> None:
    user = studio.user()
    root = Administrator.of(studio.root)
    project_id = create(projects)["id"]
    projects.request("POST", f"/projects/{project_id}/members", json={"user_id": user.user_id, "roles": VIEWER})
    (entry,) = root.data("/audit", target=project_id, operation="membership.save")
    before, after = ({item["user_id"] for item in entry[name]["users"]} for name in ("before", "after"))
    assert (entry["user_id"], after - before) == (projects.user_id, {user.user_id})


def test_member_is_added_by_login(studio: Studio, root: Administrator, projects: Administrator) -> None:
    path = f"/projects/{create(projects)['id']}/members"
    user = studio.user()
    created = projects.request("POST", path, json={"login": user.login.upper(), "roles": VIEWER})
    assert (created.status_code, created.json()["data"]["user_id"]) == (201, user.user_id)
    assert {"user_id": user.user_id, "login": user.login, "roles": VIEWER} in root.data(path)
    assert {"user_id": user.user_id, "roles": VIEWER} in projects.data(path)  # without the right to see users
    again = projects.request("POST", path, json={"login": user.login, "roles": VIEWER})
    assert (again.status_code, again.json()["error"]) == (409, "login: is a member of the project")
    for body in ({"login": user.login, "user_id": user.user_id}, {}):
        assert projects.request("POST", path, json={**body, "roles": VIEWER}).status_code == 400
    unknown = {"login": "nobody@nowhere.example", "roles": VIEWER}
    assert projects.request("POST", path, json=unknown).status_code == 404


def test_logins_are_not_told_apart_by_callers_who_may_not_add_members(
    studio: Studio, viewer: Administrator, projects: Administrator
) -> None:
    path = f"/projects/{create(projects)['id']}/members"
    for login in (studio.user().login, "nobody@nowhere.example"):
        assert viewer.request("POST", path, json={"login": login, "roles": VIEWER}).status_code == 403


def test_roles_of_members_are_those_that_a_project_can_give(projects: Administrator) -> None:
    roles = {role["name"]: role["description"] for role in projects.data(f"/projects/{create(projects)['id']}/roles")}
    assert roles["viewer"] == "See a project, its applications and services."
    assert "root" not in roles
    assert "user_manager" not in roles


def test_assignments_of_a_user_are_listed(studio: Studio, root: Administrator, projects: Administrator) -> None:
    user, project = studio.user(), create(projects)["id"]
    application = studio.application()
    studio.role(application, "tester", "test")
    studio.save_data(user, application, roles=["tester"])
    studio.join(project, user, project=["viewer"])
    found = root.data(f"/users/{user.user_id}/assignments")
    [at_application] = found["applications"]
    assert at_application["application_id"] == application
    assert at_application["roles"] == [{"name": "tester", "expired": 0, "ttl": 0}]
    assert [(item["project_id"], item["roles"]) for item in found["projects"]] == [(project, VIEWER)]
    assert projects.get(f"/users/{user.user_id}/assignments").status_code == 403
