"""Rights over applications or projects do not lead to other rights over the service."""

import itertools
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey

_numbers = itertools.count(1)
ROOT_RULE = {"private_data": {"can_manage_users": {"value": True}}}


@pytest.fixture(scope="module")
def applications(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications")


@pytest.fixture(scope="module")
def projects(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_projects")


@pytest.fixture(scope="module")
def both(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications", "can_manage_projects")


def refused(response: Any) -> bool:
    assert response.status_code in (400, 403, 404), response.text
    return True


def test_central_application_is_closed_to_managers(studio: Studio, both: Administrator, root: Administrator) -> None:
    """Everything that changes application 1, its schema, its roles, its keys or the roles of users there."""
    key = root.request("POST", "/access-keys", json={"application_id": 1}).json()["data"]
    before = root.data("/schemas/1")
    public_key = {"service_meta": {"public_key": ServiceKey().pem}}
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("PATCH", "/applications/1", {"description": "x"}),
        ("PATCH", "/applications/1", public_key),
        ("PATCH", "/applications/1", {"project_id": studio.project()}),
        ("PATCH", "/schemas/1", {"private_data": {}}),
        ("PATCH", "/schemas/1", {"secret_data": {"application": {"canModifySchema": {"value": True}}}}),
        ("PATCH", "/schemas/1", {"roles": {"mine": {"meta": ROOT_RULE, "condition": {"uid": [both.user_id]}}}}),
        ("POST", "/roles", {"application_id": 1, "name": "mine", "meta": ROOT_RULE, "default": True}),
        ("PATCH", "/roles/1/viewer", {"meta": ROOT_RULE}),
        ("PATCH", "/roles/1/auditor", {"condition": {"uid": [both.user_id]}}),
        ("POST", "/access-keys", {"application_id": 1}),
        ("PATCH", f"/access-keys/{key['id']}", {"comment": "mine"}),
        ("PATCH", f"/users/{both.user_id}/permissions", {"application_id": 1, "roles": ["root"]}),
        ("PATCH", f"/users/{both.user_id}/permissions", {"application_id": 1, "private_data": ROOT_RULE}),
        ("PATCH", f"/users/{both.user_id}/permissions", {"application_id": 1, "secret_data": {}}),
    ]
    for method, path, body in requests:
        assert refused(both.request(method, path, json=body)), (method, path, body)
    for path in ("/applications/1", "/roles/1/root", f"/access-keys/{key['id']}"):
        assert refused(both.request("DELETE", path))
    for path in ("/applications/1", "/schemas/1", "/roles/1/root", "/applications/1/holders"):
        assert refused(both.get(path))
    for path in ("/roles", "/access-keys"):
        assert refused(both.get(path, application_id=1))
    assert root.data("/schemas/1") == before
    assert root.request("DELETE", f"/access-keys/{key['id']}").status_code == 200


def test_rights_over_applications_do_not_count_outside_the_management_api(
    studio: Studio, applications: Administrator
) -> None:
    """There a login from a game may be accepted."""
    application_id = studio.application()
    caller = ApiUser(
        applications.client, applications.user_id, "", applications.headers["Authorization"].removeprefix("Bearer ")
    )
    assert caller.call("application", action="get", data={"application_id": application_id}).status == 403
    assert caller.call("roles", action="save", application_id=application_id, data={"name": "x"}).status == 403
    assert caller.call("application", action="save", data={"name": "x"}).status == 403


def test_key_of_an_application_signs_for_it_only(studio: Studio, applications: Administrator) -> None:
    """A manager of applications can give an application a key, which signs service JWTs."""
    application_id = studio.application()
    signing = ServiceKey()
    body = {"service_meta": {"public_key": signing.pem}}
    assert applications.request("PATCH", f"/applications/{application_id}", json=body).status_code == 200
    token = signing.sign(studio.server, application_id)
    for target, status in ((application_id, 200), (1, 403), (studio.application(studio.project()), 403)):
        request = {"action": "get", "application_id": target, "data": {"user_id": studio.root.user_id, "type": "roles"}}
        headers = {"Service-Jwt": token}
        answer = studio.client.post("/api/permissions/meta/data", json=request, headers=headers)
        assert answer.status_code == status, answer.text
    service = studio.client.get("/api/admin/users", headers={"Authorization": f"Bearer {token}"})
    assert service.status_code in (401, 403)


def test_access_key_of_an_application_is_no_credential_of_the_management_api(
    studio: Studio, applications: Administrator
) -> None:
    body = {"application_id": studio.application()}
    secret = applications.request("POST", "/access-keys", json=body).json()["data"]["hash"]
    for path in ("/users", "/applications"):
        headers = {"Authorization": f"Bearer {secret}"}
        assert studio.client.get(f"/api/admin{path}", headers=headers).status_code == 401


def test_moved_application_takes_no_rights_along(studio: Studio, applications: Administrator, server: Server) -> None:
    """Moving is allowed. Keys and grants of the old project end, so that nobody there keeps rights in the new one."""
    old, new = studio.project(), studio.project()
    application_id = studio.application(old)
    member = studio.user()
    studio.join(old, member, applications={str(application_id): ["app_admin"]})
    path = f"/applications/{application_id}"
    applications.request("PATCH", path, json={"service_meta": {"public_key": ServiceKey().pem}})
    applications.request("POST", "/access-keys", json={"application_id": application_id})
    moved = applications.request("PATCH", path, json={"project_id": new})
    assert (moved.status_code, moved.json()["data"]["project_id"]) == (200, new)
    assert applications.data("/access-keys", application_id=application_id) == []
    keys = query(server, "SELECT 1 FROM application_keys WHERE application_id = $1", application_id)
    assert (len(keys), moved.json()["data"]["service_meta"]["public_key"]) == (0, "")
    assert Administrator.of(member).get(path).status_code == 403
    assert applications.request("PATCH", path, json={"project_id": None}).json()["data"]["project_id"] is None
    assert applications.request("PATCH", path, json={"project_id": "nowhere"}).status_code == 400


def test_project_rights_do_not_move_applications(studio: Studio) -> None:
    projects = administrator(studio, "can_manage_projects")  # a new one: who has an application gets 404 for others
    application_id = studio.application(studio.project())
    body = {"project_id": studio.project()}
    assert projects.request("PATCH", f"/applications/{application_id}", json=body).status_code == 403


@pytest.mark.parametrize("role", ["admin", "manager", "developer", "app_admin"])
def test_manager_of_projects_gives_no_rights_over_applications(
    studio: Studio, projects: Administrator, both: Administrator, role: str
) -> None:
    """These roles include rights over the project's applications, which can_manage_projects does not have."""
    project_id, user = studio.project(), studio.user()
    path = f"/projects/{project_id}/members"
    for user_id in (user.user_id, projects.user_id):
        response = projects.request("POST", path, json={"user_id": user_id, "roles": {"project": [role]}})
        assert (response.status_code, f"role {role}" in response.json()["error"]) == (403, True), response.text
    assert projects.request("DELETE", f"{path}/{studio.keeper.user_id}").status_code == 403
    assert both.request("POST", path, json={"user_id": user.user_id, "roles": {"project": [role]}}).status_code == 201


def test_manager_of_projects_gives_roles_with_rights_over_projects(studio: Studio, projects: Administrator) -> None:
    name = f"organizer{next(_numbers)}"
    rules = {"can_view_project": {"value": True}, "can_manage_project": {"value": True}}
    studio.role(1, name, project=rules, group={"can_manage_group": {"value": True}})
    custom, keys = f"custom{next(_numbers)}", f"keys{next(_numbers)}"
    studio.role(1, custom, project={"can_launch_rockets": {"value": True}})
    studio.role(1, keys, app={"can_manage_app_api_keys": {"value": True}})
    path = f"/projects/{studio.project()}/members"
    for role, status in (("viewer", 201), (name, 201), (custom, 201), (keys, 403)):
        body = {"user_id": studio.user().user_id, "roles": {"project": [role]}}
        assert projects.request("POST", path, json=body).status_code == status, role


def test_roles_over_the_service_are_no_roles_of_members(studio: Studio, both: Administrator) -> None:
    name = f"overseer{next(_numbers)}"
    studio.role(1, name, "can_manage_users")
    path = f"/projects/{studio.project()}/members"
    for role in ("root", "user_manager", name):
        response = both.request("POST", path, json={"user_id": both.user_id, "roles": {"project": [role]}})
        assert response.status_code == 400, response.text


def test_manager_of_projects_grants_regular_roles_of_applications_and_revokes_no_protected_ones(
    studio: Studio, projects: Administrator, applications: Administrator, both: Administrator
) -> None:
    project_id = studio.project()
    application_id = studio.application(project_id)
    studio.role(application_id, "player", "play")
    studio.role(application_id, "chief", "rule", protected=True)
    group_id = studio.group(project_id)
    path = f"/projects/{project_id}"

    def settings(role: str, action: str) -> dict[str, Any]:
        item = {"group_id": group_id, "role": role, "action": action}
        return {"settings": {"services": {str(application_id): {"groups": [item]}}}}

    assert projects.request("PATCH", path, json=settings("player", "grant")).status_code == 200
    everyone = [{"title": "All", "condition": {"everyone": True}}]
    for body in ({"users": [projects.user_id]}, {"conditions": everyone}):
        assert projects.request("PATCH", f"/groups/{group_id}", json=body).status_code == 200
    assert applications.request("PATCH", f"/groups/{group_id}", json={"users": []}).status_code == 403
    assert projects.request("PATCH", path, json=settings("chief", "revoke")).status_code == 403
    assert both.request("PATCH", path, json=settings("chief", "revoke")).status_code == 200
    assert projects.request("PATCH", f"/groups/{group_id}", json={"users": []}).status_code == 403
    assert projects.request("DELETE", f"/groups/{group_id}").status_code == 403
    assert projects.request("PATCH", f"/groups/{group_id}", json={"title": "Still a group"}).status_code == 200


def test_groups_never_give_roles_of_the_central_application(studio: Studio, both: Administrator) -> None:
    project_id = studio.project()
    group_id = studio.group(project_id, both.user_id)
    grant = {"group_id": group_id, "role": "root", "action": "grant"}
    settings = {"settings": {"services": {"1": {"groups": [grant]}}}}
    assert both.request("PATCH", f"/projects/{project_id}", json=settings).status_code == 400


def test_access_lists_do_not_shut_members_with_more_rights_out(studio: Studio, projects: Administrator) -> None:
    admin = studio.user()
    project_id = studio.project(admin, studio.keeper)
    body: dict[str, Any]
    for body in (
        {"settings": {"allowed_domains": ["elsewhere.example"]}},
        {"disallow": [studio.group(project_id, admin.user_id, tags=("project",))]},
        {"allow": [studio.group(project_id, projects.user_id, tags=("project",))]},
    ):
        response = projects.request("PATCH", f"/projects/{project_id}", json=body)
        assert response.status_code in (403, 409), response.text


def test_new_project_gives_rights_in_itself_only(studio: Studio, projects: Administrator) -> None:
    """Its administrator manages applications there, but gets no application of another project into it."""
    created = projects.request("POST", "/projects", json={"title": f"Own {next(_numbers)}"}).json()["data"]
    own = projects.request("POST", "/applications", json={"name": "Own", "project_id": created["id"]})
    assert own.status_code == 201
    for other in (studio.application(), studio.application(studio.project())):
        response = projects.request("PATCH", f"/applications/{other}", json={"project_id": created["id"]})
        assert response.status_code == 404
    assert refused(projects.request("POST", "/applications", json={"name": "Outside"}))
    assert refused(projects.request("POST", "/projects", json={"title": "x", "override": True, "author": "1"}))


def test_secret_for_logins_with_mail_addresses_is_no_field(studio: Studio, applications: Administrator) -> None:
    application_id = studio.application()
    for name in ("email_secret", "email_secret_sealed", "private_key_sealed", "revision"):
        response = applications.request("PATCH", f"/applications/{application_id}", json={name: "x"})
        assert (response.status_code, response.json()["error"]) == (400, f"{name}: is unknown")


def test_application_is_not_removed_by_a_change(studio: Studio, applications: Administrator) -> None:
    path = f"/applications/{studio.application()}"
    before = applications.get(path).json()["data"]
    assert applications.request("PATCH", path, json={"removed": True}).json()["data"] == before
    assert applications.get(path).json()["data"] == before


def test_tags_of_applications_are_only_labels(studio: Studio, applications: Administrator) -> None:
    application_id = studio.application()
    body = {"service_meta": {"tags": ["root", "project"]}}
    assert applications.request("PATCH", f"/applications/{application_id}", json=body).status_code == 200
    assert refused(applications.get("/users"))
    assert refused(applications.get("/projects"))
