"""Applications in the management API."""

import itertools
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.kit.browser import query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

_numbers = itertools.count(1)


def new_name() -> str:
    return f"Managed application {next(_numbers)}"


def create(caller: Administrator, **fields: Any) -> dict[str, Any]:
    response = caller.request("POST", "/applications", json={"name": new_name(), **fields})
    assert response.status_code == 201, response.text
    application: dict[str, Any] = response.json()["data"]
    return application


@pytest.fixture(scope="module")
def applications(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications")


@pytest.fixture(scope="module")
def viewer(studio: Studio) -> Administrator:
    return administrator(studio, "can_view_applications")


def test_application_is_created_changed_and_removed(studio: Studio, applications: Administrator) -> None:
    project_id = studio.project()
    settings = {"restricted_domains": ["example.com"]}
    created = create(applications, description="One", project_id=project_id, settings=settings)
    path = f"/applications/{created['application_id']}"
    assert (created["description"], created["project_id"], created["settings"]) == ("One", project_id, settings)
    changed = applications.request("PATCH", path, json={"description": "Two", "service_meta": {"env": "prod"}})
    assert changed.json()["data"] == created | {"description": "Two", "service_meta": {"env": "prod"}}
    assert applications.get(path).headers["ETag"] == changed.headers["ETag"]
    removed = applications.request("DELETE", path)
    assert (removed.status_code, removed.json()["data"]["removed"]) == (200, True)
    assert applications.data(path)["removed"] is True
    listed = applications.data("/applications", search=created["name"])
    assert (listed, applications.data("/applications", search=created["name"], removed=1)) == (
        [],
        [removed.json()["data"]],
    )


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "name: is required"),
        ({"name": ""}, "name: "),
        ({"name": "x", "colour": "red"}, "colour: is unknown"),
        ({"name": "x", "project_id": "nowhere"}, "project_id: there is no such project"),
        ({"name": "x", "service_meta": {"name": "x" * 33}}, "service_meta.name: must be at most 32"),
    ],
)
def test_invalid_application_is_refused_with_the_field(
    applications: Administrator, body: dict[str, Any], error: str
) -> None:
    response = applications.request("POST", "/applications", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text


def test_change_needs_the_current_version(applications: Administrator) -> None:
    created = create(applications)
    path = f"/applications/{created['application_id']}"
    tag = applications.get(path).headers["ETag"]
    assert applications.request("PATCH", path, {"If-Match": tag}, json={"description": "One"}).status_code == 200
    for method, options in (("PATCH", {"json": {"description": "Two"}}), ("DELETE", {})):
        assert applications.request(method, path, {"If-Match": tag}, **options).status_code == 412
    assert applications.data(path) == created | {"description": "One"}


def test_list_is_paged_and_searched(studio: Studio, viewer: Administrator, applications: Administrator) -> None:
    project_id = studio.project()
    name = "Listed in pages"
    ids = [create(applications, name=f"{name} {n}", project_id=project_id)["application_id"] for n in "abcde"]
    found = all_pages(viewer, "/applications", limit=2, search=name.upper())
    assert [application["application_id"] for application in found] == ids
    assert [item["application_id"] for item in viewer.data("/applications", project_id=project_id)] == ids
    by_id = {"search": str(ids[1]), "project_id": project_id}  # names of others may have the number, too
    assert [item["application_id"] for item in viewer.data("/applications", **by_id)] == [ids[1]]
    assert viewer.get("/applications", after="x").status_code == 400
    assert viewer.get("/applications", project_id="nowhere").status_code == 404


def test_central_application_is_for_root_only(
    root: Administrator, viewer: Administrator, applications: Administrator
) -> None:
    assert root.data("/applications/1")["name"] == "Central"
    assert 1 in [item["application_id"] for item in root.data("/applications", limit=1)]
    for caller in (viewer, applications):
        assert caller.get("/applications/1").status_code == 403
        assert 1 not in [item["application_id"] for item in caller.data("/applications", limit=1)]
    refused = applications.request("PATCH", "/applications/1", json={"name": "Mine"})
    assert (refused.status_code, "root" in refused.json()["error"]) == (403, True)
    assert root.request("DELETE", "/applications/1").status_code == 409


def test_unknown_application_is_404(applications: Administrator) -> None:
    for path in ("/applications/99999999", "/applications/x", "/applications/0", "/applications/%00"):
        assert applications.get(path).status_code == 404
        assert applications.request("PATCH", path, json={"name": "x"}).status_code == 404
        assert applications.request("DELETE", path).status_code == 404


def own_applications(studio: Studio, caller: Administrator) -> list[int]:
    """Returns the applications that the caller may see, without those of other tests that everybody may see."""
    answer = Administrator.of(studio.user()).get("/applications")
    seen = {item["application_id"] for item in answer.json().get("data", [])}
    return [item["application_id"] for item in caller.data("/applications") if item["application_id"] not in seen]


def test_members_of_a_project_see_its_applications_only(studio: Studio) -> None:
    developer = studio.user()
    project_id, other_project = studio.project(), studio.project()
    studio.join(project_id, developer, project=["developer"])
    own, other = studio.application(project_id), studio.application(other_project)
    caller = Administrator.of(developer)
    assert own_applications(studio, caller) == [own]
    assert caller.data(f"/applications/{own}")["settings"] == {}
    assert caller.request("PATCH", f"/applications/{own}", json={"description": "x"}).status_code == 200
    created = create(caller, project_id=project_id)
    assert created["project_id"] == project_id
    for method, options in (("GET", {}), ("PATCH", {"json": {"description": "x"}}), ("DELETE", {})):
        assert caller.request(method, f"/applications/{other}", **options).status_code == 404
    refused = caller.request("POST", "/applications", json={"name": new_name()})
    assert (refused.status_code, "can_create_app" in refused.json()["error"]) == (403, True)


def test_viewer_of_a_project_sees_no_settings(studio: Studio) -> None:
    user = studio.user()
    project_id = studio.project()
    studio.join(project_id, user, project=["viewer"])
    application_id = studio.application(project_id)
    caller = Administrator.of(user)
    (listed,) = caller.data("/applications", project_id=project_id)
    assert listed == caller.data(f"/applications/{application_id}")
    assert listed.keys() == {"application_id", "name", "description", "project_id", "removed"}
    refused = caller.request("PATCH", f"/applications/{application_id}", json={"description": "x"})
    assert (refused.status_code, "can_manage_applications" in refused.json()["error"]) == (403, True)


def test_rights_at_one_application_show_it_alone(studio: Studio) -> None:
    user = studio.user()
    application_id = studio.application()
    studio.give_secret(user, application_id, "canRead", "canSave")
    caller = Administrator.of(user)
    assert own_applications(studio, caller) == [application_id]
    assert caller.request("PATCH", f"/applications/{application_id}", json={"description": "x"}).status_code == 200
    assert caller.get("/roles").status_code == 403
    assert caller.get("/access-keys").status_code == 403


def test_keys_are_never_shown(studio: Studio, applications: Administrator, root: Administrator, server: Server) -> None:
    created = create(applications, service_meta={"private_key": "a private key", "env": "dev"})
    path = f"/applications/{created['application_id']}"
    assert created["service_meta"] == {"env": "dev"}
    assert "a private key" not in applications.get(path).text + root.get("/audit", limit=200).text
    stored = query(server, "SELECT private_key_sealed FROM applications WHERE name = $1", created["name"])
    assert stored[0]["private_key_sealed"] is not None


def test_every_change_is_audited_with_before_and_after(applications: Administrator, root: Administrator) -> None:
    created = create(applications, description="Before")
    target = str(created["application_id"])
    applications.request("PATCH", f"/applications/{target}", json={"description": "After"})
    applications.request("DELETE", f"/applications/{target}")
    entries = root.data("/audit", target=target, actor=applications.user_id)
    assert [entry["operation"] for entry in entries] == [
        "application.delete",
        "application.save",
        "application.create",
    ]
    saved = entries[1]
    assert (saved["before"]["description"], saved["after"]["description"]) == ("Before", "After")


def test_dry_run_shows_who_loses_permissions(studio: Studio, applications: Administrator) -> None:
    user = studio.user()
    application_id = studio.application()
    studio.role(application_id, "player", "play")
    studio.save_data(user, application_id, roles=["player"])
    path = f"/applications/{application_id}"
    answer = applications.request("DELETE", f"{path}?dry_run=1").json()
    assert [(item["user_id"], item["lost"]) for item in answer["users"]] == [(user.user_id, ["private_data.play"])]
    assert answer["total"] == 1
    assert applications.data(path)["removed"] is False


def test_service_client_manages_applications(service_client: Administrator, root: Administrator) -> None:
    created = create(service_client)
    path = f"/applications/{created['application_id']}"
    assert service_client.request("PATCH", path, json={"description": "x"}).status_code == 200
    assert service_client.request("DELETE", path).status_code == 200
    entries = root.data("/audit", target=str(created["application_id"]))
    assert {entry["service_id"] for entry in entries} == {1}
