"""What all resources of the management API have in common: pages, versions, records that are sent back."""

import time
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.admin.paging import all_pages
from tests.perm.endpoints.conftest import Studio

LISTS = (
    "users", "clients", "identity-providers", "applications", "projects", "groups", "roles", "schemas", "access-keys",
    "signing-keys", "game-sessions", "audit", "webhooks", "invitations", "users/{user}/sessions", "users/{user}/games",
    "users/{user}/factors",
)  # fmt: skip
SEARCHED = (
    "users", "clients", "identity-providers", "applications", "projects", "groups", "roles", "schemas", "access-keys",
    "signing-keys", "game-sessions", "webhooks",
)  # fmt: skip
RULES = {"private_data": {"chat": {"kick": {"value": True}}}}


@pytest.fixture(scope="module")
def records(root: Administrator) -> dict[str, str]:
    """A new record of each kind, by its path."""

    def create(path: str, **fields: Any) -> Any:
        response = root.request("POST", path, json=fields)
        assert response.status_code == 201, response.text
        return response.json()["data"]

    user = create("/users", login="conventions@example.com", totp_secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    project = create("/projects", title="Conventions")["id"]
    app = create("/applications", name="Conventions", project_id=project)["application_id"]
    create("/roles", application_id=app, name="mod", meta=RULES)
    member = {"user_id": user["user_id"], "roles": {"project": ["viewer"]}}
    group = create("/groups", project_id=project, title="Testers", users=["1"])["group_id"]
    url = "http://127.0.0.1:9/x"
    return {
        "user": f"/users/{user['user_id']}",
        "client": f"/clients/{create('/clients', client_id='conventions')['client_id']}",
        "provider": f"/identity-providers/{create('/identity-providers', id='steam', kind='steam')['id']}",
        "application": f"/applications/{app}",
        "project": f"/projects/{project}",
        "member": f"/projects/{project}/members/{create(f'/projects/{project}/members', **member)['user_id']}",
        "group": f"/groups/{group}",
        "role": f"/roles/{app}/mod",
        "schema": f"/schemas/{app}",
        "key": f"/access-keys/{create('/access-keys', application_id=app, comment='ci')['id']}",
        "webhook": f"/webhooks/{create('/webhooks', url=url, secret='s' * 32, disabled=True)['id']}",
    }


def test_every_list_has_next_and_its_pages_are_complete(root: Administrator, records: dict[str, str]) -> None:
    user_id = records["user"].rpartition("/")[2]
    for name in LISTS:
        path = f"/{name.format(user=user_id)}"
        page = root.get(path, limit=1000).json()
        assert page.keys() == {"status", "data", "next"}, path
        if path != "/audit":
            assert all_pages(root, path, limit=1) == page["data"], path
    assert root.get("/users", limit=1001).status_code == 400


def test_unknown_search_finds_nothing(root: Administrator, records: dict[str, str]) -> None:
    for name in SEARCHED:
        page = root.get(f"/{name}", search="nothing like it").json()
        assert (page["data"], page["next"]) == ([], None), name


def test_search_finds_records_by_what_names_them(root: Administrator, records: dict[str, str]) -> None:
    for name, text in (("access-keys", "CI"), ("identity-providers", "Ste"), ("webhooks", "http://127.0.0.1:9/")):
        assert len(root.data(f"/{name}", search=text)) == 1, name
    kid = root.data("/signing-keys")[0]["kid"]
    assert [key["kid"] for key in root.data("/signing-keys", search=kid)] == [kid]


def test_record_that_was_read_can_be_sent_back(root: Administrator, records: dict[str, str]) -> None:
    for name, path in records.items():
        read = root.get(path)
        sent = root.request("PATCH", path, {"If-Match": read.headers["ETag"]}, json=read.json()["data"])
        assert sent.status_code == 200, (name, sent.text)
        assert sent.json()["data"].keys() == read.json()["data"].keys(), name


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("user", "user_id"), ("client", "client_id"), ("provider", "id"), ("application", "application_id"),
        ("project", "id"), ("member", "user_id"), ("group", "group_id"), ("role", "name"), ("key", "id"),
        ("webhook", "id"),
    ],
)  # fmt: skip
def test_id_of_a_record_cannot_be_changed(root: Administrator, records: dict[str, str], name: str, field: str) -> None:
    body = {**root.data(records[name]), field: "77"}
    answer = root.request("PATCH", records[name], json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, f"{field}: cannot be changed")


def test_version_is_accepted_weak_or_without_quotes(root: Administrator, records: dict[str, str]) -> None:
    path = records["project"]
    for form in ("{}", "W/{}", '"other", {}'):
        tag = root.get(path).headers["ETag"]
        body = {"description": form}
        assert root.request("PATCH", path, {"If-Match": form.format(tag)}, json=body).status_code == 200, form
    tag = root.get(path).headers["ETag"].strip('"')
    assert root.request("PATCH", path, {"If-Match": tag}, json={"description": "x"}).status_code == 200
    for stale in (tag, f'W/"{tag}"', '""', "", "W/"):
        assert root.request("PATCH", path, {"If-Match": stale}, json={"description": "y"}).status_code == 412, stale


def test_only_root_chooses_ids_and_keys(studio: Studio, root: Administrator, records: dict[str, str]) -> None:
    other = administrator(studio, "can_manage_applications")
    app = int(records["application"].rpartition("/")[2])
    for path, field, value, fields in (
        ("/applications", "application_id", 54321, {"name": "Chosen"}),
        ("/access-keys", "hash", "a key that the client has chosen".replace(" ", "-"), {"application_id": app}),
    ):
        body = {field: value, **fields}
        refused = other.request("POST", path, json=body)
        assert (refused.status_code, refused.json()["error"].split(":")[0]) == (403, field), refused.text
        created = root.request("POST", path, json=body)
        assert (created.status_code, created.json()["data"][field]) == (201, value), created.text
        assert root.request("POST", path, json={**body, "name": "N"} if "name" in body else body).status_code == 409


def test_audit_takes_logins_and_times(root: Administrator, records: dict[str, str]) -> None:
    user = root.data(records["user"])
    entries = root.data("/audit", target=user["user_id"])
    assert root.data("/audit", target=user["login"].upper()) == entries != []
    assert root.data("/audit", actor=user["login"]) == root.data("/audit", actor=user["user_id"]) == []
    assert root.data("/audit", target=user["user_id"], since=entries[-1]["at"]) == entries
    assert root.data("/audit", target=user["user_id"], until="2020-01-01T00:00:00Z") == []
    assert root.data("/audit", target=user["user_id"], since=int(time.time()) + 3600) == []
    assert root.get("/audit", since="yesterday").status_code == 400
    assert root.get(f"/audit/{entries[0]['id']}").headers["ETag"]


def test_dry_run_takes_true_and_assignment_takes_data(root: Administrator, records: dict[str, str]) -> None:
    app = int(records["application"].rpartition("/")[2])
    path, body = f"{records['user']}/permissions", {"application_id": app, "data": {"roles": ["mod"]}}
    for flag in ("1", "true"):
        answer = root.request("PATCH", path, params={"dry_run": flag}, json=body).json()
        assert [user["gained"] for user in answer["users"]] == [["private_data.chat.kick"]]
    assert root.request("PATCH", path, params={"dry_run": "yes"}, json=body).status_code == 400
    assert root.data(path, application_id=app, type="roles") == []
    assert root.request("PATCH", path, params={"dry_run": "false"}, json=body).status_code == 200
    assert root.data(path, application_id=app, type="roles") == ["mod"]


def test_state_is_exported_and_applied_by_its_own_address(root: Administrator, records: dict[str, str]) -> None:
    document = root.data("/state/export", sections="roles")
    assert document == root.data("/state", sections="roles")
    answer = root.request("POST", "/state", params={"dry_run": "1"}, json=document).json()
    assert (answer["users"], answer["total"], answer["warnings"]) == ([], 0, [])


def test_webhook_takes_other_names_of_events(root: Administrator, records: dict[str, str]) -> None:
    body = {"events": ["permission", "user.disabled"]}
    changed = root.request("PATCH", records["webhook"], json=body)
    assert changed.json()["data"]["events"] == ["permissions", "user_disabled"], changed.text
    assert root.data(f"{records['webhook']}/dead-letters") == []
    assert root.request("PATCH", records["webhook"], json={"events": ["all", "nonsense"]}).status_code == 400


def test_body_without_content_type_is_json_and_none_is_an_empty_object(
    root: Administrator, records: dict[str, str]
) -> None:
    for content, status, nick in ((b'{"nick": "Typed"}', 200, "Typed"), (b"", 200, "Typed"), (b"nick=x", 400, "Typed")):
        assert root.request("PATCH", records["user"], content=content).status_code == status
        assert root.data(records["user"])["nick"] == nick
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert root.request("PATCH", records["user"], form, content=b"nick=x").status_code == 415
    assert root.request("POST", "/users").status_code == 400


def test_deletion_takes_override_in_its_body(root: Administrator, records: dict[str, str]) -> None:
    app = int(records["application"].rpartition("/")[2])
    root.request("POST", "/roles", json={"application_id": app, "name": "short", "default": True, "meta": RULES})
    statements = {"assertions": ["conventions@example.com may chat.kick"]}
    assert root.request("PUT", f"/applications/{app}/assertions", json=statements).status_code == 200
    root.request("PATCH", f"{records['user']}/permissions", json={"application_id": app, "roles": []})
    path = f"/roles/{app}/short"
    assert root.request("DELETE", path).status_code == 409
    for body in ({"override": 1}, {"force": True}):
        assert root.request("DELETE", path, json=body).status_code == 400
    assert root.request("DELETE", path, json={"override": True}).status_code == 200
    assert root.request("PUT", f"/applications/{app}/assertions", json={"assertions": []}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/clients", {"client_id": "field", "redirect_uris": ["ftp://x"]}, 400, ["redirect_uris", 0]),
        ("/users", {"login": "field@example.com", "tags": ["a,b"]}, 400, ["tags", 0]),
        ("/users", {"login": "conventions@example.com"}, 409, ["login"]),
        ("/groups", {"project_id": "nowhere", "title": "T", "users": ["x"]}, 400, ["users", 0]),
        (
            "/roles",
            {"application_id": 1, "name": "r", "condition": {"or": [{"tga": "x"}]}},
            400,
            ["condition", "or", 0],
        ),
        ("/access-keys", {"application_id": 1, "hash": "short"}, 400, ["hash"]),
        ("/state/diff", {"groups": [{"group_id": "x"}]}, 400, ["groups", 0, "group_id"]),
    ],
)
def test_error_about_a_field_has_its_path(
    root: Administrator, records: dict[str, str], path: str, body: dict[str, Any], status: int, field: list[str | int]
) -> None:
    response = root.request("POST", path, json=body)
    assert (response.status_code, response.json()["field"]) == (status, field), response.text


def test_error_about_no_field_has_no_path(root: Administrator) -> None:
    missing = root.get("/clients/there-is-none")
    assert (missing.status_code, "field" in missing.json()) == (404, False)
