"""The state of the service in the management API: export, diff and apply."""

import itertools
from typing import Any

import pytest

from sso.admin.state import MAX_COMPARED_RECORDS
from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import each_worker, query
from tests.kit.builders import PASSWORD
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import Studio

pytestmark = pytest.mark.two_workers

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def viewer(studio: Studio) -> Administrator:
    return administrator(studio, "can_view_state")


@pytest.fixture(scope="module")
def preparer(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_state")


def new_login() -> str:
    return f"stated{next(_numbers)}@example.com"


def post(caller: Administrator, path: str, document: dict[str, Any], **headers: str) -> dict[str, Any]:
    response = caller.request("POST", f"/state/{path}", headers, json=document)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_export_has_all_sections_and_no_secrets(server: Server, viewer: Administrator) -> None:
    secret = "secret of an exported client"
    server.apply(
        {
            "users": [{"login": new_login(), "password": PASSWORD, "totp_secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}],
            "clients": [{"client_id": "exported", "client_secret": secret, "redirect_hosts": ["a.example.com"]}],
        }
    )
    response = viewer.get("/state")
    document = response.json()["data"]
    assert list(document) == [
        "users", "clients", "identity_providers", "applications", "schemas", "roles", "projects", "permissions",
        "groups", "memberships",
    ]  # fmt: skip
    assert "exported" in {client["client_id"] for client in document["clients"]}
    for text in (secret, PASSWORD, "JBSWY3DPEHPK3PXP", "sealed", "argon2"):
        assert text not in response.text
    assert response.headers["ETag"]


def test_export_of_some_sections(viewer: Administrator) -> None:
    assert list(viewer.data("/state", sections="schemas,clients")) == ["clients", "schemas"]
    refused = viewer.get("/state", sections="clients,secrets")
    assert (refused.status_code, refused.json()["error"].startswith("sections: expected names among")) == (400, True)


def test_exported_document_changes_nothing(root: Administrator) -> None:
    document = root.data("/state", sections="clients,applications,schemas,roles,projects,groups")
    compared = post(root, "diff", document)["data"]
    assert (compared["created"], compared["changed"], compared["changes"]) == (0, 0, [])
    assert compared["unchanged"] > 0


def test_diff_shows_each_record_and_changes_nothing(server: Server, root: Administrator, viewer: Administrator) -> None:
    login, client_id = new_login(), f"diffed{next(_numbers)}"
    server.apply({"users": [{"login": login, "nick": "Before"}]})
    client = {"client_id": client_id, "redirect_hosts": ["a.example.com"]}
    compared = post(viewer, "diff", {"users": [{"login": login, "nick": "After"}], "clients": [client]})["data"]
    assert (compared["created"], compared["changed"], compared["unchanged"]) == (1, 1, 0)
    changed, created = compared["changes"]
    assert (changed["operation"], changed["before"], changed["after"]) == (
        "user.save",
        {"nick": "Before"},
        {"nick": "After"},
    )
    assert (created["operation"], created["target"], created["before"]) == ("client.create", client_id, None)
    assert root.get(f"/clients/{client_id}").status_code == 404
    assert root.data("/users", search=login)[0]["nick"] == "Before"
    assert root.data("/audit", target=client_id) == []


def test_applied_document_is_used_by_every_worker_and_audited(
    server: Server, root: Administrator, service_client: Administrator
) -> None:
    provider = f"applied-{next(_numbers)}"
    login = new_login()
    document = {"users": [{"login": login}], "identity_providers": [{"id": provider, "kind": "steam"}]}
    applied = post(service_client, "apply", document)
    assert applied["data"] == {"created": 2, "changed": 0, "unchanged": 0}
    with each_worker(server) as workers:
        for worker in workers:
            until(lambda worker=worker: f"/login/upstream/{provider}" in worker.get("/login").text)
    (user,) = root.data("/users", search=login)
    (entry,) = root.data("/audit", target=user["user_id"])
    assert (entry["operation"], entry["service_id"]) == ("user.create", 1)
    assert post(root, "apply", document)["data"] == {"created": 0, "changed": 0, "unchanged": 2}
    root.request("DELETE", f"/identity-providers/{provider}")


def test_dry_run_says_who_gains_what_and_changes_nothing(
    studio: Studio, root: Administrator, preparer: Administrator
) -> None:
    application_id, user = studio.application(), studio.user()
    rules = {"chat": {"kick": {"value": False}}}
    roles = [{"name": "moderator", "meta": {"private_data": {"chat": {"kick": {"value": True}}}}}]
    document = {
        "schemas": {str(application_id): {"private_data": rules}},
        "roles": {str(application_id): roles},
        "permissions": [
            {"user_id": user.user_id, "application_id": application_id, "data": {"roles": [{"name": "moderator"}]}}
        ],
    }
    answer = post(preparer, "apply?dry_run=1", document)
    assert (answer["dry_run"], answer["total"]) == (True, 1)
    (change,) = answer["users"]
    assert (change["user_id"], change["gained"], change["lost"]) == (user.user_id, ["private_data.chat.kick"], [])
    assert answer["data"]["created"] > 0
    assert studio.rules_of(user, application_id) == []
    assert preparer.request("POST", "/state/apply", json=document).status_code == 403
    assert post(root, "apply", document)["data"]["created"] > 0
    assert studio.rules_of(user, application_id) == ["chat.kick"]


def test_only_root_applies_documents(root: Administrator, preparer: Administrator, viewer: Administrator) -> None:
    document = {"users": [{"login": new_login()}]}
    refused = preparer.request("POST", "/state/apply", json=document)
    assert (refused.status_code, "the role root is required" in refused.json()["error"]) == (403, True)
    assert viewer.request("POST", "/state/apply?dry_run=1", json=document).status_code == 403
    assert root.data("/users", search=document["users"][0]["login"]) == []


@pytest.mark.parametrize(
    "document",
    [
        {"users": [{"login": "guessed@example.com", "password": "a guess"}]},
        {"users": [{"login": "guessed@example.com", "totp_secret": "JBSWY3DPEHPK3PXP"}]},
        {"clients": [{"client_id": "guessed", "client_secret": "a guess of the secret"}]},
        {"identity_providers": [{"id": "guessed", "kind": "steam", "client_secret": "a guess"}]},
        {"applications": [{"application_id": 10, "service_meta": {"private_key": "a guess of the key"}}]},
        {"access_keys": [{"application_id": 10, "hash": "a-guess-of-an-access-key-of-32-characters"}]},
    ],
)
def test_secrets_cannot_be_tried_out_without_root(
    root: Administrator, viewer: Administrator, preparer: Administrator, document: dict[str, Any]
) -> None:
    """The difference would tell whether a guess is right, without the limits of a login."""
    for caller, path in ((viewer, "diff"), (preparer, "diff"), (preparer, "apply?dry_run=1")):
        refused = caller.request("POST", f"/state/{path}", json=document)
        assert (refused.status_code, "the role root is required" in refused.json()["error"]) == (403, True)


def test_apply_with_an_older_version_is_refused(server: Server, root: Administrator) -> None:
    tag = root.get("/state").headers["ETag"]
    server.apply({"users": [{"login": new_login()}]})
    document = {"users": [{"login": new_login()}]}
    stale = root.request("POST", "/state/apply", {"If-Match": tag}, json=document)
    assert stale.status_code == 412
    post(root, "apply", document, **{"If-Match": root.get("/state").headers["ETag"]})


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"userz": []}, "userz: is unknown"),
        ({"users": {}}, "users: must be an array"),
        ({"users": [{"login": "a@example.com", "nack": "x"}]}, "users[0].nack: unknown field"),
        ({"users": [{"login": "a@example.com"}, {"login": "x"}]}, "users[1].login: "),
        ({"clients": [{"client_id": "a b"}]}, "clients[0].client_id: must be"),
        ({"permissions": [{"user_id": "nobody@example.com", "application_id": 1, "data": {}}]}, "permissions[0]"),
    ],
)
def test_invalid_document_is_refused_with_the_location(
    root: Administrator, document: dict[str, Any], error: str
) -> None:
    for path in ("diff", "apply", "apply?dry_run=1"):
        response = root.request("POST", f"/state/{path}", json=document)
        assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text


def test_large_state_is_exported_without_users(server: Server, viewer: Administrator) -> None:
    sql = "INSERT INTO users (user_id, login, login_key) SELECT 'mass' || n, 'mass' || n, 'mass' || n "
    query(server, sql + "FROM generate_series(1, 10001) n")
    try:
        refused = viewer.get("/state")
        assert (refused.status_code, "use `sso export`" in refused.json()["error"]) == (409, True)
        assert viewer.get("/state", sections="clients,schemas").status_code == 200
    finally:
        query(server, "DELETE FROM users WHERE user_id LIKE 'mass%'")


def test_only_root_compares_large_documents(
    root: Administrator, viewer: Administrator, preparer: Administrator
) -> None:
    """Writers of the records that a document names wait while it is compared."""
    document: dict[str, Any] = {"users": [{"login": new_login()} for _ in range(MAX_COMPARED_RECORDS + 1)]}
    unread = {"users": [*document["users"], {"login": 1}]}  # what is too large is refused before it is read
    roles: dict[str, Any] = {
        "schemas": {"1": {"roles": {f"role{number}": {} for number in range(MAX_COMPARED_RECORDS)}}}
    }
    for too_large in (unread, roles):
        refused = viewer.request("POST", "/state/diff", json=too_large)
        assert (refused.status_code, "at most 500 records" in refused.text) == (400, True)
    for caller, path in ((viewer, "/state/diff"), (preparer, "/state/apply?dry_run=1")):
        refused = caller.request("POST", path, json=document)
        assert (refused.status_code, "at most 500 records" in refused.text) == (400, True)
    assert post(root, "diff", document)["data"]["created"] == MAX_COMPARED_RECORDS + 1
