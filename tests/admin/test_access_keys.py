"""Access keys of applications in the management API."""

from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.perm.endpoints.conftest import Studio


@pytest.fixture(scope="module")
def applications(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications")


@pytest.fixture
def app(studio: Studio) -> int:
    return studio.application()


def test_key_is_shown_once_and_works_until_it_is_deleted(studio: Studio, applications: Administrator, app: int) -> None:
    created = applications.request("POST", "/access-keys", json={"application_id": app, "comment": "server"})
    assert created.status_code == 201
    key = created.json()["data"]
    secret = key.pop("hash")
    path = f"/access-keys/{key['id']}"
    assert (applications.data(path), applications.data("/access-keys", application_id=app)) == (key, [key])
    assert applications.get(path).headers["ETag"] == created.headers["ETag"]
    user = studio.user()
    body = {"action": "get", "application_id": app, "data": {"user_id": user.user_id, "type": "roles"}}
    headers = {"Authorization": f"Bearer {secret}"}
    assert studio.client.post("/api/permissions/meta/data", json=body, headers=headers).status_code == 200
    assert applications.request("DELETE", path).status_code == 200
    assert studio.client.post("/api/permissions/meta/data", json=body, headers=headers).status_code == 401
    assert applications.get(path).status_code == 404
    assert applications.request("DELETE", path).status_code == 404


@pytest.mark.parametrize("path", ["/access-keys/%00", "/roles/10/%00", "/groups/%00", "/projects/%00", "/schemas/%00"])
def test_text_that_is_no_id_names_no_record(root: Administrator, path: str) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        body: dict[str, Any] = {"json": {}} if method == "PATCH" else {}
        response = root.request(method, path, **body)
        assert response.status_code == 404 or (method, path) == ("DELETE", "/schemas/%00"), (method, response.text)


def test_comment_is_changed_with_the_current_version_only(applications: Administrator, app: int) -> None:
    created = applications.request("POST", "/access-keys", json={"application_id": app})
    key, tag = created.json()["data"], created.headers["ETag"]
    path = f"/access-keys/{key['id']}"
    changed = applications.request("PATCH", path, {"If-Match": tag}, json={"comment": "new"})
    assert (changed.status_code, changed.json()["data"]["comment"]) == (200, "new")
    for method, options in (("PATCH", {"json": {"comment": "newer"}}), ("DELETE", {})):
        assert applications.request(method, path, {"If-Match": tag}, **options).status_code == 412
    assert applications.data(path)["comment"] == "new"


def test_use_of_a_key_does_not_change_its_version(studio: Studio, applications: Administrator, app: int) -> None:
    created = applications.request("POST", "/access-keys", json={"application_id": app})
    key, tag = created.json()["data"], created.headers["ETag"]
    path = f"/access-keys/{key['id']}"
    body = {"action": "get", "application_id": app, "data": {"user_id": studio.user().user_id, "type": "roles"}}
    headers = {"Authorization": f"Bearer {key['hash']}"}
    assert studio.client.post("/api/permissions/meta/data", json=body, headers=headers).status_code == 200
    read = applications.get(path)
    assert (read.headers["ETag"], "last_used" in read.json()["data"]) == (tag, True)
    changed = applications.request("PATCH", path, {"If-Match": tag}, json={"comment": "used"})
    assert (changed.status_code, changed.headers["ETag"]) == (200, applications.get(path).headers["ETag"])
    assert applications.request("DELETE", path, {"If-Match": changed.headers["ETag"]}).status_code == 200


def test_application_has_two_keys_at_most(applications: Administrator, app: int) -> None:
    statuses = [
        applications.request("POST", "/access-keys", json={"application_id": app}).status_code for _ in range(3)
    ]
    assert statuses == [201, 201, 409]
    assert len(all_pages(applications, "/access-keys", limit=1, application_id=app)) == 2


def test_viewer_sees_keys_without_values_and_changes_none(
    studio: Studio, applications: Administrator, app: int
) -> None:
    viewer = administrator(studio, "can_view_applications")
    key = applications.request("POST", "/access-keys", json={"application_id": app}).json()["data"]
    (listed,) = viewer.data("/access-keys", application_id=app)
    assert (listed["id"], "hash" in listed) == (key["id"], False)
    assert viewer.request("DELETE", f"/access-keys/{key['id']}").status_code == 403
    assert viewer.request("POST", "/access-keys", json={"application_id": app}).status_code == 403


def test_rights_at_one_application_do_not_count_at_others(
    studio: Studio, applications: Administrator, app: int
) -> None:
    user = studio.user()
    studio.give_secret(user, app, "canCreateJwt")
    caller = Administrator.of(user)
    other = applications.request("POST", "/access-keys", json={"application_id": studio.application()}).json()["data"]
    own = caller.request("POST", "/access-keys", json={"application_id": app}).json()["data"]
    assert [key["id"] for key in caller.data("/access-keys")] == [own["id"]]
    assert caller.get(f"/access-keys/{other['id']}").status_code == 404
    assert caller.request("DELETE", f"/access-keys/{other['id']}").status_code == 404
    assert caller.request("POST", "/access-keys", json={"application_id": other["application_id"]}).status_code == 404


def test_value_of_a_key_is_not_in_the_audit_trail(applications: Administrator, root: Administrator, app: int) -> None:
    key = applications.request("POST", "/access-keys", json={"application_id": app}).json()["data"]
    entries = root.get("/audit", target=key["id"])
    assert [entry["operation"] for entry in entries.json()["data"]] == ["access_key.create"]
    assert key["hash"] not in entries.text
