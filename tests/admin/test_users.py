"""Users in the management API."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import fresh_browser, query
from tests.kit.builders import PASSWORD
from tests.kit.mailbox import mails, wait_for_mails
from tests.kit.server import Server, running
from tests.perm.endpoints.conftest import Studio

_numbers = itertools.count(1)


def new_login() -> str:
    return f"managed{next(_numbers)}@example.com"


def create(caller: Administrator, **fields: Any) -> dict[str, Any]:
    response = caller.request("POST", "/users", json={"login": new_login(), **fields})
    assert response.status_code == 201, response.text
    user: dict[str, Any] = response.json()["data"]
    return user


def can_log_in(caller: Administrator, login: str, password: str = PASSWORD) -> bool:
    return caller.client.post("/proxy/api/login", json={"login": login, "password": password}).status_code == 200


def test_created_user_can_log_in_and_is_found(manager: Administrator) -> None:
    login = new_login()
    response = manager.request("POST", "/users", json={"login": login, "password": PASSWORD, "nick": "Mia"})
    user = response.json()["data"]
    assert (response.status_code, user["login"], user["nick"], user["disabled"]) == (201, login, "Mia", False)
    assert "password" not in user
    assert can_log_in(manager, login)
    found = manager.get(f"/users/{user['user_id']}")
    assert (found.json()["data"], found.headers["ETag"]) == (user, response.headers["ETag"])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "login: is required"),
        ({"login": "x"}, "login"),
        ({"login": "a@example.com", "nack": "x"}, "nack: is unknown"),
        ({"login": "a@example.com", "disabled": "yes"}, "disabled: must be true or false"),
        ({"login": "a@example.com", "user_id": "x"}, "user_id: must be a decimal number as a string"),
    ],
)
def test_invalid_user_is_refused_with_the_field(manager: Administrator, body: dict[str, Any], error: str) -> None:
    response = manager.request("POST", "/users", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text


def test_taken_login_is_a_conflict(manager: Administrator) -> None:
    user = create(manager)
    response = manager.request("POST", "/users", json={"login": user["login"].upper()})
    assert (response.status_code, response.json()["error"]) == (409, "login: is used by another user")
    other = create(manager)
    response = manager.request("PATCH", f"/users/{other['user_id']}", json={"login": user["login"]})
    assert (response.status_code, response.json()["error"]) == (409, "login: is used by another user")


def test_change_needs_the_current_version(manager: Administrator) -> None:
    user = create(manager, nick="One")
    path = f"/users/{user['user_id']}"
    tag = manager.get(path).headers["ETag"]
    changed = manager.request("PATCH", path, {"If-Match": tag}, json={"nick": "Two"})
    assert (changed.status_code, changed.json()["data"]["nick"]) == (200, "Two")
    stale = manager.request("PATCH", path, {"If-Match": tag}, json={"nick": "Three"})
    assert stale.status_code == 412
    assert manager.data(path)["nick"] == "Two"
    assert manager.request("PATCH", path, {"If-Match": "*"}, json={"nick": "Four"}).status_code == 200


def test_user_id_cannot_be_changed(manager: Administrator) -> None:
    user = create(manager)
    path = f"/users/{user['user_id']}"
    refused = manager.request("PATCH", path, json={"user_id": "1"})
    assert (refused.status_code, refused.json()["error"]) == (400, "user_id: cannot be changed")
    assert manager.request("PATCH", path, json={"user_id": user["user_id"], "nick": "x"}).status_code == 200


def test_disabled_user_is_signed_out_and_cannot_log_in(server: Server, manager: Administrator) -> None:
    user = create(manager, password=PASSWORD)
    path = f"/users/{user['user_id']}"
    with fresh_browser(server, user["login"]) as browser:
        browser.open_account()
        assert len(manager.data(f"{path}/sessions")) == 1
        assert manager.request("PATCH", path, json={"disabled": True}).json()["data"]["disabled"] is True
        assert browser.get("/account").status_code == 303
    assert not can_log_in(manager, user["login"])
    assert manager.request("PATCH", path, json={"disabled": False}).status_code == 200
    assert can_log_in(manager, user["login"])


def test_new_password_replaces_the_old_one_and_the_user_is_told(server: Server, manager: Administrator) -> None:
    user = create(manager, password=PASSWORD)
    changed = manager.request("PATCH", f"/users/{user['user_id']}", json={"password": "another good password"})
    assert changed.status_code == 200
    assert not can_log_in(manager, user["login"])
    assert can_log_in(manager, user["login"], "another good password")
    assert "Support has set a new password" in wait_for_mails(server, user["login"], "Your password")[0]
    again = manager.request("PATCH", f"/users/{user['user_id']}", json={"password": "another good password"})
    assert again.status_code == 200
    assert len(mails(server, user["login"], "Your password")) == 1  # it was the password already


def test_deleted_user_is_closed_and_can_be_restored(manager: Administrator) -> None:
    user = create(manager, password=PASSWORD)
    path = f"/users/{user['user_id']}"
    closed = manager.request("DELETE", path).json()["data"]
    assert closed["disabled"] is True
    assert closed["deletion_due"] is not None
    assert not can_log_in(manager, user["login"])
    restored = manager.request("PATCH", path, json={"disabled": False}).json()["data"]
    assert (restored["disabled"], restored["deletion_due"]) == (False, None)
    assert can_log_in(manager, user["login"])


def test_user_who_is_being_erased_cannot_be_restored(server: Server, manager: Administrator) -> None:
    user = create(manager)
    path = f"/users/{user['user_id']}"
    assert manager.request("DELETE", path).status_code == 200
    query(server, "UPDATE users SET deletion_by = 'erasing' WHERE user_id = $1", user["user_id"])
    refused = manager.request("PATCH", path, json={"disabled": False})
    assert (refused.status_code, refused.json()["error"]) == (400, "user_id: belongs to a user who is being erased")


def test_refused_deletion_is_not_in_the_audit_trail(studio: Studio, root: Administrator) -> None:
    """The only administrator of a project cannot be deleted."""
    user = studio.user()
    studio.project(user)
    assert root.request("DELETE", f"/users/{user.user_id}").status_code == 409
    assert "user.delete" not in {entry["operation"] for entry in root.data("/audit", target=user.user_id)}


def test_sessions_and_games_are_listed_and_ended(server: Server, manager: Administrator) -> None:
    user = create(manager, password=PASSWORD)
    path = f"/users/{user['user_id']}"
    assert can_log_in(manager, user["login"])
    (game,) = manager.data(f"{path}/games")
    assert manager.request("DELETE", f"{path}/games/{game['ids'][0]}").status_code == 200
    assert manager.data(f"{path}/games") == []
    with fresh_browser(server, user["login"]) as one, fresh_browser(server, user["login"]) as two:
        one.open_account()
        two.open_account()
        first, _ = manager.data(f"{path}/sessions")
        assert manager.request("DELETE", f"{path}/sessions/{first['id']}").status_code == 200
        assert len(manager.data(f"{path}/sessions")) == 1
        assert manager.request("DELETE", f"{path}/sessions").status_code == 200
        assert manager.data(f"{path}/sessions") == []
        assert (one.get("/account").status_code, two.get("/account").status_code) == (303, 303)
    assert manager.request("DELETE", f"{path}/sessions/{first['id']}").status_code == 404


def test_factors_are_reset(manager: Administrator) -> None:
    user = create(manager, password=PASSWORD, totp_secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    path = f"/users/{user['user_id']}/factors"
    assert manager.data(path) == [{"type": "totp", "count": 1}]
    assert not can_log_in(manager, user["login"])
    assert manager.request("DELETE", path).status_code == 200
    assert manager.data(path) == []
    assert can_log_in(manager, user["login"])


def test_permissions_are_shown_and_explained(studio: Studio, manager: Administrator) -> None:
    user = studio.user()
    studio.give_rules(user, "can_create_app")
    path = f"/users/{user.user_id}/permissions"
    assert manager.data(path, type="list_short") == ["can_create_app"]
    explained = manager.get(path, explain="can_create_app").json()["explain"]
    assert explained["held"] is True
    assert manager.get(path, application_id=999_999).status_code == 404
    assert manager.get(path, type="x").status_code == 400
    assert manager.get("/users/999999999999/permissions").status_code == 404


def test_manager_cannot_change_users_with_more_rights(studio: Studio, manager: Administrator) -> None:
    above = administrator(studio, "can_manage_users", "can_remove_apps")
    for user_id, missing in ((studio.root.user_id, "the role root"), (above.user_id, "can_remove_apps")):
        for method, path, options in (
            ("PATCH", "", {"json": {"password": "taken over by a manager"}}),
            ("DELETE", "", {}),
            ("DELETE", "/sessions", {}),
            ("DELETE", "/factors", {}),
        ):
            response = manager.request(method, f"/users/{user_id}{path}", **options)
            assert (response.status_code, missing in response.json()["error"]) == (403, True), response.text
    assert manager.request("PATCH", f"/users/{manager.user_id}", json={"nick": "Me"}).status_code == 200
    assert above.request("PATCH", f"/users/{manager.user_id}", json={"nick": "You"}).status_code == 200


def test_root_role_protects_even_if_its_condition_does_not_hold(studio: Studio, manager: Administrator) -> None:
    studio.role(1, "far_away", "can_remove_apps", condition={"ip": "203.0.113.0/24"})
    user = studio.user()
    studio.give_roles(user, "far_away")
    assert manager.request("DELETE", f"/users/{user.user_id}/factors").status_code == 403


def test_manager_cannot_make_users_with_more_rights(studio: Studio, manager: Administrator) -> None:
    """Conditions of roles depend on fields that a manager sets."""
    number = next(_numbers)
    tag, domain, user_id = f"staff{number}", f"studio{number}.example", str(7_000_000_000 + number)
    studio.role(1, f"tagged{number}", "can_view_audit", condition={"tag": tag})
    studio.role(1, f"at_work{number}", "can_view_audit", condition={"tag": f"{tag}-ip", "ip": "203.0.113.0/24"})
    by_tag_or_place = {"or": [{"tag": f"{tag}-or", "ip": "203.0.113.0/24"}, {"ip": "198.51.100.0/24"}]}
    studio.role(1, f"either{number}", "can_view_audit", condition=by_tag_or_place)
    given_by_a_number = {"private_data": {"can_view_audit": {"value": 1}}}
    studio.role(1, f"number{number}", meta=given_by_a_number, condition={"tag": f"{tag}-one", "ip": "203.0.113.0/24"})
    studio.role(1, f"colleague{number}", "can_view_audit", condition={"domain": domain})
    studio.role(1, f"chosen{number}", "can_view_audit", condition={"uid": [user_id]})
    friend = create(manager)
    gains: list[dict[str, Any]] = [{"tags": [f"{tag}{suffix}"]} for suffix in ("", "-ip", "-or", "-one")]
    gains.append({"login": f"x{number}@{domain}"})
    for fields in gains:
        for target in (friend["user_id"], manager.user_id):
            response = manager.request("PATCH", f"/users/{target}", json=fields)
            assert (response.status_code, "can_view_audit" in response.json()["error"]) == (403, True), response.text
    for fields in [*gains, {"user_id": user_id}]:
        response = manager.request("POST", "/users", json={"login": new_login(), **fields})
        assert (response.status_code, "can_view_audit" in response.json()["error"]) == (403, True), response.text
    assert manager.data(f"/users/{friend['user_id']}") == friend
    assert manager.request("PATCH", f"/users/{friend['user_id']}", json={"tags": ["other"]}).status_code == 200
    above = administrator(studio, "can_manage_users", "can_view_audit")
    assert above.request("PATCH", f"/users/{friend['user_id']}", json={"tags": [tag]}).status_code == 200
    assert manager.request("PATCH", f"/users/{friend['user_id']}", json={"tags": []}).status_code == 403


def test_rights_at_the_central_application_protect(studio: Studio, manager: Administrator) -> None:
    """With them, every role of the central application could be changed."""
    user = studio.user()
    studio.give_secret(user, 1, "canModifySchema")
    response = manager.request("PATCH", f"/users/{user.user_id}", json={"password": "taken over by a manager"})
    assert (response.status_code, "the role root" in response.json()["error"]) == (403, True), response.text


def test_login_cannot_be_removed(manager: Administrator) -> None:
    user = create(manager)
    response = manager.request("PATCH", f"/users/{user['user_id']}", json={"login": None})
    assert (response.status_code, response.json().get("data")) == (200, user)


def test_search_finds_by_the_beginning_of_login_and_nick_and_by_id(manager: Administrator) -> None:
    name = f"search{next(_numbers)}"
    users = [create(manager, login=f"{name}{letter}@example.com", nick=f"Nick{name}") for letter in "CaB"]
    logins = [f"{name}{letter}@example.com" for letter in "aBC"]
    assert [user["login"] for user in manager.data("/users", search=name.upper())] == logins
    assert [user["login"] for user in manager.data("/users", search=f"NICK{name}")] == logins
    assert [user["login"] for user in manager.data("/users", search=f"{name}b")] == [f"{name}B@example.com"]
    assert users[0] in manager.data("/users", search=users[0]["user_id"])
    assert manager.data("/users", search="%") == []


def test_pages_follow_each_other_without_gaps(manager: Administrator) -> None:
    name = f"paged{next(_numbers)}"
    expected = [f"{name}{number}@example.com" for number in range(5)]
    for login in expected:
        create(manager, login=login)
    found: list[str] = []
    after = ""
    while True:
        answer = manager.get("/users", search=name, limit=2, **({"after": after} if after else {})).json()
        found += [user["login"] for user in answer["data"]]
        if answer["next"] is None:
            break
        after = answer["next"]
    assert found == expected


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"limit": 0}, "limit: must be at least 1"),
        ({"limit": 1001}, "limit: must be at most 1000"),
        ({"limit": "x"}, "limit: must be an integer"),
        ({"serach": "x"}, "serach: is unknown"),
    ],
)
def test_invalid_query_is_refused_with_the_parameter(manager: Administrator, query: dict[str, Any], error: str) -> None:
    response = manager.get("/users", **query)
    name, _, expected = error.partition(": ")
    problem = {"status": "ERROR", "error": error, "field": [name], "expected": expected}
    assert (response.status_code, response.json()) == (400, problem)


@pytest.mark.parametrize("path", ["/users?search=a%00b", "/users?after=%00", "/audit?target=%00"])
def test_nul_in_the_query_is_refused(root: Administrator, path: str) -> None:
    response = root.request("GET", path)
    assert (response.status_code, response.json()["error"]) == (400, "the query has a NUL character")


def test_text_that_is_no_user_id_names_no_user(root: Administrator) -> None:
    for user_id in ("%00", "a", "1%00"):
        assert root.get(f"/users/{user_id}").status_code == 404
        assert root.get(f"/users/{user_id}/permissions").status_code == 404


def test_repeated_parameter_is_refused(manager: Administrator) -> None:
    assert manager.request("GET", "/users?limit=1&limit=2").json()["error"] == "limit: must be given once"


def test_every_change_is_audited_with_before_and_after(manager: Administrator, root: Administrator) -> None:
    user = create(manager, nick="Before", password=PASSWORD)
    path = f"/users/{user['user_id']}"
    manager.request("PATCH", path, json={"nick": "After", "password": "a changed password"})
    manager.request("DELETE", f"{path}/factors")
    manager.request("DELETE", path)
    entries = root.data("/audit", target=user["user_id"])
    assert [entry["operation"] for entry in entries] == ["user.delete", "user.reset_2fa", "user.save", "user.create"]
    assert {entry["user_id"] for entry in entries} == {manager.user_id}
    assert [(entries[0][side], entries[1][side]["signed_in"]) for side in ("before", "after")] == [
        ({"deleted": False}, True),
        ({"deleted": True}, False),
    ]
    saved = entries[2]
    assert (saved["before"]["nick"], saved["after"]["nick"]) == ("Before", "After")
    assert "a changed password" not in str(entries)


def test_audit_is_filtered_and_paged(
    server: Server, manager: Administrator, root: Administrator, service_client: Administrator
) -> None:
    user = create(manager)
    for number in range(3):
        manager.request("PATCH", f"/users/{user['user_id']}", json={"nick": f"n{number}"})
    first = root.get("/audit", target=user["user_id"], actor=manager.user_id, limit=3).json()
    second = root.get("/audit", target=user["user_id"], actor=manager.user_id, limit=3, after=first["next"]).json()
    assert [entry["operation"] for entry in first["data"] + second["data"]] == ["user.save"] * 3 + ["user.create"]
    assert second["next"] is None
    assert root.data("/audit", target=user["user_id"], actor="0") == []
    assert root.data("/audit", target=user["user_id"], until=1) == []
    assert len(root.data("/audit", target=user["user_id"], since=1)) == 4
    assert root.get("/audit", after="x").status_code == 400
    by_service = create(service_client)
    (entry,) = root.data("/audit", target=by_service["user_id"])
    assert (entry["service_id"], entry["client_id"]) == (1, "management")  # which of several clients
    assert "application 1 with client management" in server.sso("audit", "--operation", "user.create").stdout


def test_requests_beyond_the_rate_are_429(server: Server, root: Administrator, tmp_path: Path) -> None:
    settings = {**server.settings, "SSO_RATE_ADMIN": "2", "SSO_BIND": "127.0.0.1:0"}
    with running(tmp_path, **settings) as limited, limited.client() as client:
        caller = Administrator(client, root.headers)
        answers = [caller.get("/users", limit=1) for _ in range(4)]
        assert answers[-1].status_code == 429
        assert 0 < int(answers[-1].headers["Retry-After"]) <= 60


def test_closed_account_is_restored_once_and_a_disabled_user_stays_disabled(
    root: Administrator, studio: Studio
) -> None:
    path = f"/users/{studio.user().user_id}"
    assert root.request("POST", f"{path}/restore").status_code == 409
    assert root.request("DELETE", path).status_code == 200
    restored = root.request("POST", f"{path}/restore").json()["data"]
    assert (restored["disabled"], restored["deletion_due"]) == (False, None)
    assert root.request("DELETE", path).status_code == 200
    assert root.request("PATCH", path, json={"disabled": True}).status_code == 200
    restored = root.request("POST", f"{path}/restore").json()["data"]
    assert (restored["disabled"], restored["deletion_due"]) == (True, None)
