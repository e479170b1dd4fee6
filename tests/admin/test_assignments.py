"""Roles and own data of users at applications in the management API, and the holders of roles."""

from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.perm.endpoints.conftest import Studio


@pytest.fixture(scope="module")
def applications(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications")


@pytest.fixture(scope="module")
def app(studio: Studio) -> int:
    application_id = studio.application()
    for name in ("player", "winner"):
        studio.role(application_id, name, name)
    return application_id


def change(caller: Administrator, user_id: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
    return caller.request("PATCH", f"/users/{user_id}/permissions", headers, json=body)


def test_roles_and_data_are_assigned_and_take_effect(studio: Studio, applications: Administrator, app: int) -> None:
    user = studio.user()
    roles = ["player", {"name": "winner", "expired": 4102444800}]
    saved = change(applications, user.user_id, application_id=app, roles=roles)
    assert saved.json()["data"] == {"user_id": user.user_id, "application_id": app, "roles": roles}
    assert studio.rules_of(user, app) == ["player", "winner"]
    private_data = {"own": {"value": True}}
    saved = change(applications, user.user_id, application_id=app, private_data=private_data, roles=[])
    assert "roles" not in saved.json()["data"]
    assert studio.rules_of(user, app) == ["own"]


def test_permissions_are_read_by_viewers_of_users_or_applications(
    studio: Studio, root: Administrator, app: int
) -> None:
    user = studio.user()
    saved = change(root, user.user_id, application_id=app, roles=["player"])
    path = f"/users/{user.user_id}/permissions"
    for right in ("can_view_users", "can_view_applications"):
        viewer = administrator(studio, right)
        answer = viewer.get(path, application_id=app, type="list_short")
        assert (answer.json()["data"], answer.headers["ETag"]) == (["player"], saved.headers["ETag"]), right
        assert viewer.get(path, application_id=app, explain="player").json()["explain"]["held"] is True
        assert ("record" in answer.json()) == (right == "can_view_users")
    assert administrator(studio, "can_view_applications").get(path).status_code == 403


def test_change_needs_the_current_version(studio: Studio, applications: Administrator, app: int) -> None:
    user = studio.user()
    tag = applications.get(f"/users/{user.user_id}/permissions", application_id=app).headers["ETag"]
    assert (
        change(applications, user.user_id, {"If-Match": tag}, application_id=app, roles=["player"]).status_code == 200
    )
    assert change(applications, user.user_id, {"If-Match": tag}, application_id=app, roles=[]).status_code == 412
    assert studio.rules_of(user, app) == ["player"]


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({}, 400, "application_id: is required"),
        ({"roles": ["nobody"]}, 400, "roles[0]: there is no role nobody"),
        ({"roles": "player"}, 400, "roles: must be an array"),
        ({"colour": 1}, 400, "colour: is unknown"),
        ({"private_data": {"a.b": {"value": True}}}, 400, "private_data"),
        ({"application_id": 99999999}, 404, "application not found"),
    ],
)
def test_invalid_assignment_is_refused_with_the_field(
    studio: Studio, applications: Administrator, app: int, body: dict[str, Any], status: int, error: str
) -> None:
    body = {"application_id": app, **body} if body else body
    response = change(applications, studio.root.user_id, **body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (status, True), response.text


def test_unknown_user_is_404(applications: Administrator, app: int) -> None:
    for user_id in ("999999999999", "x"):
        assert change(applications, user_id, application_id=app, roles=[]).status_code == 404


def test_dry_run_of_an_assignment_changes_nothing(studio: Studio, applications: Administrator, app: int) -> None:
    user = studio.user()
    body = {"application_id": app, "roles": ["player"]}
    answer = applications.request("PATCH", f"/users/{user.user_id}/permissions?dry_run=1", json=body).json()
    assert [(item["user_id"], item["gained"]) for item in answer["users"]] == [(user.user_id, ["private_data.player"])]
    assert studio.rules_of(user, app) == []


def test_caller_who_assigns_roles_of_one_application_assigns_no_others(studio: Studio, app: int) -> None:
    assigner, user = studio.user(), studio.user()
    studio.give_secret(assigner, app, roles={"canWrite": "all", "canRead": "all"})
    caller = Administrator.of(assigner)
    assert change(caller, user.user_id, application_id=app, roles=["player"]).status_code == 200
    refused = change(caller, user.user_id, application_id=app, private_data={})
    assert (refused.status_code, "private" in refused.json()["error"]) == (403, True)
    other = studio.application()
    assert change(caller, user.user_id, application_id=other, roles=[]).status_code == 403
    holders = caller.data(f"/applications/{app}/holders", role="player")
    assert user.user_id in [holder["user_id"] for holder in holders]
    assert caller.get(f"/applications/{other}/holders").status_code == 403


def test_answer_to_an_assignment_has_only_sections_that_the_caller_may_read(
    studio: Studio, applications: Administrator, app: int
) -> None:
    assigner, user = studio.user(), studio.user()
    studio.give_secret(assigner, app, roles={"canWrite": "all", "canRead": "all"})
    sections: dict[str, Any] = {
        name: {"own": {"value": True}} for name in ("public_data", "private_data", "secret_data")
    }
    whole = change(applications, user.user_id, application_id=app, **sections)
    assert whole.json()["data"].keys() >= sections.keys()
    saved = change(Administrator.of(assigner), user.user_id, application_id=app, roles=["player"])
    assert saved.json()["data"] == {
        "user_id": user.user_id,
        "application_id": app,
        "roles": ["player"],
        "public_data": sections["public_data"],
    }


def test_holders_of_a_role_are_paged(studio: Studio, applications: Administrator) -> None:
    application_id = studio.application()
    users = sorted(studio.user().user_id for _ in range(5))
    for name in ("tester", "writer"):
        studio.role(application_id, name, name)
    for user_id in users:
        change(applications, user_id, application_id=application_id, roles=["tester", "writer"])
    path = f"/applications/{application_id}/holders"
    found = all_pages(applications, path, limit=2, role="tester")
    assert found == [{"role": "tester", "user_id": user_id, "expired": 0, "ttl": 0} for user_id in users]
    assert len(all_pages(applications, path, limit=3)) == 10
    assert all("login" in holder for holder in Administrator.of(studio.root).data(path))
    assert applications.get("/applications/1/holders").status_code == 403
    assert applications.get("/applications/99999999/holders").status_code == 404
