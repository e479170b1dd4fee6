"""Roles and schemas of applications in the management API."""

from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.perm.endpoints.conftest import Studio

PLAY = {"private_data": {"play": {"value": True}}}


@pytest.fixture(scope="module")
def applications(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications")


@pytest.fixture
def app(studio: Studio) -> int:
    return studio.application()


def add_role(caller: Administrator, application_id: int, name: str, **fields: Any) -> dict[str, Any]:
    body = {"application_id": application_id, "name": name, **fields}
    response = caller.request("POST", "/roles", json=body)
    assert response.status_code == 201, response.text
    role: dict[str, Any] = response.json()["data"]
    return role


def test_role_is_created_changed_and_deleted(applications: Administrator, app: int) -> None:
    created = add_role(applications, app, "player", meta=PLAY, description="One")
    path = f"/roles/{app}/player"
    assert (created["application_id"], created["name"], created["meta"]) == (app, "player", PLAY)
    changed = applications.request("PATCH", path, json={"description": "Two", "user_limit": 3})
    assert changed.json()["data"] == created | {"description": "Two", "user_limit": 3}
    assert applications.get(path).headers["ETag"] == changed.headers["ETag"]
    deleted = applications.request("DELETE", path)
    assert (deleted.status_code, deleted.json()) == (200, {"status": "OK"})
    assert applications.get(path).status_code == 404


def test_existing_role_is_not_overwritten_and_missing_one_not_created(applications: Administrator, app: int) -> None:
    add_role(applications, app, "player", meta=PLAY)
    again = applications.request("POST", "/roles", json={"application_id": app, "name": "player", "meta": {}})
    assert (again.status_code, again.json()["error"]) == (409, "name: the application has a role with this name")
    assert applications.data(f"/roles/{app}/player")["meta"] == PLAY
    for method, options in (("PATCH", {"json": {"description": "x"}}), ("DELETE", {})):
        assert applications.request(method, f"/roles/{app}/nobody", **options).status_code == 404
    assert applications.data("/roles", application_id=app, search="nobody") == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"name": "x"}, "application_id: is required"),
        ({"application_id": 0, "name": "x"}, "application_id: must be an application id"),
        ({"application_id": 10, "name": "a.b"}, "name: a name must be 1 to 64"),
        ({"application_id": 10, "name": "x", "colour": 1}, "colour: is unknown"),
        ({"application_id": 10, "name": "x", "user_limit": -1}, "user_limit: "),
    ],
)
def test_invalid_role_is_refused_with_the_field(applications: Administrator, body: dict[str, Any], error: str) -> None:
    response = applications.request("POST", "/roles", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text


def test_invalid_condition_is_refused_with_its_place(applications: Administrator, app: int) -> None:
    body = {"application_id": app, "name": "x", "condition": {"or": [{"planet": "mars"}]}}
    response = applications.request("POST", "/roles", json=body)
    assert (response.status_code, response.json()["error"].startswith("condition.or[0]")) == (400, True), response.text


def test_change_of_a_role_needs_the_current_version(applications: Administrator, app: int) -> None:
    created = add_role(applications, app, "player", meta=PLAY)
    path = f"/roles/{app}/player"
    tag = applications.get(path).headers["ETag"]
    assert applications.request("PATCH", path, {"If-Match": tag}, json={"description": "One"}).status_code == 200
    for method, options in (("PATCH", {"json": {"description": "Two"}}), ("DELETE", {})):
        assert applications.request(method, path, {"If-Match": tag}, **options).status_code == 412
    assert applications.data(path) == created | {"description": "One"}


def test_roles_are_paged_and_searched(studio: Studio, applications: Administrator) -> None:
    first, second = studio.application(), studio.application()
    for application_id in (first, second):
        for name in ("zpaged_b", "zpaged_a", "zpaged_c"):
            add_role(applications, application_id, name)
    found = all_pages(applications, "/roles", limit=2, search="ZPAGED")
    names = [(role["application_id"], role["name"]) for role in found]
    assert names == [(app, name) for app in (first, second) for name in ("zpaged_a", "zpaged_b", "zpaged_c")]
    assert len(all_pages(applications, "/roles", limit=1, application_id=first)) == 3
    assert applications.get("/roles", after="10").status_code == 400


def test_dry_run_of_a_role_shows_who_gains_and_changes_nothing(
    studio: Studio, applications: Administrator, app: int
) -> None:
    user = studio.user()
    created = add_role(applications, app, "player", meta=PLAY)
    studio.save_data(user, app, roles=["player"])
    path = f"/roles/{app}/player"
    meta = {"private_data": {"play": {"value": True}, "win": {"value": True}}}
    answer = applications.request("PATCH", f"{path}?dry_run=1", json={"meta": meta}).json()
    (affected,) = answer["users"]
    assert (affected["user_id"], affected["gained"], affected["lost"]) == (user.user_id, ["private_data.win"], [])
    assert applications.data(path) == created
    answer = applications.request("DELETE", f"{path}?dry_run=1").json()
    assert [item["lost"] for item in answer["users"]] == [["private_data.play"]]
    new = {"application_id": app, "name": "all", "default": True, "meta": meta}
    assert applications.request("POST", "/roles?dry_run=1", json=new).json()["total"] > 0
    assert applications.get(f"/roles/{app}/all").status_code == 404
    assert applications.data(path) == created


def test_dry_run_is_0_or_1(applications: Administrator, app: int) -> None:
    response = applications.request("PATCH", f"/schemas/{app}?dry_run=yes", json={})
    assert (response.status_code, response.json()["error"]) == (400, 'dry_run: must be "0" or "1"')


def test_schema_is_changed_by_section(applications: Administrator, app: int) -> None:
    path = f"/schemas/{app}"
    before = applications.get(path)
    private_data = {"play": {"value": False, "protected": False, "description": "May play."}}
    changed = applications.request(
        "PATCH", path, {"If-Match": before.headers["ETag"]}, json={"private_data": private_data}
    )
    schema = changed.json()["data"]
    assert (schema["private_data"], schema["version"]) == (private_data, before.json()["data"]["version"] + 1)
    assert schema["login"] == before.json()["data"]["login"]
    stale = applications.request("PATCH", path, {"If-Match": before.headers["ETag"]}, json={"private_data": {}})
    assert stale.status_code == 412
    assert applications.data(path) == schema


def test_change_of_a_role_is_a_change_of_the_schema(applications: Administrator, app: int) -> None:
    tag = applications.get(f"/schemas/{app}").headers["ETag"]
    add_role(applications, app, "player")
    assert applications.request("PATCH", f"/schemas/{app}", {"If-Match": tag}, json={"login": {}}).status_code == 412
    assert "player" in applications.data(f"/schemas/{app}")["roles"]


def test_schemas_are_listed_without_roles(applications: Administrator, app: int) -> None:
    add_role(applications, app, "player")
    found = applications.data("/schemas", search=str(app))  # names of other applications may contain the number
    (listed,) = [schema for schema in found if schema["application_id"] == app]
    assert "roles" not in listed
    pages = all_pages(applications, "/schemas", limit=1, search=str(app))
    assert [schema["application_id"] for schema in pages].count(app) == 1


def test_secret_data_of_a_schema_is_changed_by_managers_of_applications(
    studio: Studio, applications: Administrator, app: int
) -> None:
    secret = {"application": {"canRead": {"value": True}}}
    saved = applications.request("PATCH", f"/schemas/{app}", json={"secret_data": secret})
    assert saved.json()["data"]["secret_data"]["application"]["canRead"]["value"] is True
    user = studio.user()
    studio.give_secret(user, app, "canModifySchema", "canReadSchema")
    caller = Administrator.of(user)
    assert caller.request("PATCH", f"/schemas/{app}", json={"login": {}}).status_code == 200
    refused = caller.request("PATCH", f"/schemas/{app}", json={"secret_data": {}})
    assert (refused.status_code, "can_manage_applications" in refused.json()["error"]) == (403, True)
    secret = {"application": {"canRead": {"value": False}}}
    assert applications.request("PATCH", f"/schemas/{app}", json={"secret_data": secret}).status_code == 200


def test_caller_with_rights_at_an_application_manages_its_roles(studio: Studio, app: int) -> None:
    user = studio.user()
    other = studio.application()
    studio.give_secret(user, app, "canModifySchema", "canReadSchema")
    caller = Administrator.of(user)
    add_role(caller, app, "player")
    assert [role["name"] for role in caller.data("/roles")] == ["player"]
    assert [schema["application_id"] for schema in caller.data("/schemas")] == [app]
    for method, path, options in (
        ("GET", f"/roles/{other}/player", {}),
        ("DELETE", f"/roles/{other}/player", {}),
        ("POST", "/roles", {"json": {"application_id": other, "name": "x"}}),
        ("GET", f"/schemas/{other}", {}),
        ("PATCH", f"/schemas/{other}", {"json": {}}),
        ("GET", "/schemas/1", {}),
    ):
        assert caller.request(method, path, **options).status_code == 404, (method, path)
    for application_id in (other, 99999999):
        assert caller.get("/roles", application_id=application_id).status_code == 404


def test_manager_of_a_project_changes_roles_without_reading_them(studio: Studio) -> None:
    user = studio.user()
    project_id = studio.project()
    studio.join(project_id, user, project=["developer"])
    application_id = studio.application(project_id)
    caller = Administrator.of(user)
    add_role(caller, application_id, "player")
    assert caller.get(f"/roles/{application_id}/player").status_code == 403
    assert caller.request("DELETE", f"/roles/{application_id}/player").status_code == 200


def test_failing_assertion_refuses_a_change_unless_it_is_overridden(
    studio: Studio, applications: Administrator, app: int
) -> None:
    user = studio.user()
    add_role(applications, app, "player", meta=PLAY)
    studio.save_data(user, app, roles=["player"])
    body = {"assertions": [f"{user.login} may play"]}
    assert applications.request("PUT", f"/applications/{app}/assertions", json=body).status_code == 200
    path = f"/roles/{app}/player"
    refused = applications.request("PATCH", path, json={"meta": {}})
    assert (refused.status_code, f"{user.login} may play" in refused.json()["error"]) == (409, True)
    tried = applications.request("PATCH", f"{path}?dry_run=1", json={"meta": {}}).json()
    assert [failed["assertion"] for failed in tried["failed_assertions"]] == [f"{user.login} may play"]
    assert applications.data(path)["meta"] == PLAY
    assert applications.request("PATCH", path, json={"meta": {}, "override": True}).status_code == 200
    assert applications.data(path)["meta"] == {}
    assert applications.request("PATCH", path, json={"meta": PLAY}).status_code == 200
    assert applications.request("DELETE", path).status_code == 409
    assert applications.request("DELETE", f"{path}?override=1").status_code == 200
