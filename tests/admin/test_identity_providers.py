"""Identity providers in the management API."""

import itertools
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import each_worker, query
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import Studio

pytestmark = pytest.mark.two_workers

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def clerk(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_clients")


def new_id() -> str:
    return f"managed-{next(_numbers)}"


def create(caller: Administrator, **fields: Any) -> dict[str, Any]:
    response = caller.request("POST", "/identity-providers", json=record(**fields))
    assert response.status_code == 201, response.text
    provider: dict[str, Any] = response.json()["data"]
    return provider


def record(**fields: Any) -> dict[str, Any]:
    known = {"id": new_id(), "kind": "oidc", "issuer": "https://id.example.com", "client_id": "studio"}
    return {**known, "client_secret": "secret of the studio", **fields}


def test_new_provider_is_on_the_sign_in_form_of_every_worker_until_it_is_deleted(
    server: Server, root: Administrator
) -> None:
    provider = create(root, name="Example ID")
    path, button = f"/identity-providers/{provider['id']}", f"/login/upstream/{provider['id']}"
    assert (provider["name"], provider["scopes"]) == ("Example ID", ["openid", "email", "profile"])
    assert provider["callback_url"].endswith(f"{button}/callback")
    with each_worker(server) as workers:
        for worker in workers:
            until(lambda worker=worker: button in worker.get("/login").text)
        assert root.request("DELETE", path).status_code == 200
        for worker in workers:
            until(lambda worker=worker: button not in worker.get("/login").text)
    assert root.get(path).status_code == 404
    assert root.request("DELETE", path).status_code == 404


def test_secret_is_never_shown(server: Server, root: Administrator, clerk: Administrator) -> None:
    provider = create(root)
    path = f"/identity-providers/{provider['id']}"
    before = root.get(path)
    assert clerk.request("PATCH", path, json={"client_secret": "another secret"}).status_code == 200
    after = root.get(path)
    assert after.headers["ETag"] != before.headers["ETag"]
    stored = query(server, "SELECT string_agg(a::text, ' ') FROM audit a WHERE target = $1", provider["id"])[0][0]
    for text in (before.text, after.text, root.get("/identity-providers").text, stored, server.log()):
        assert "secret of the studio" not in text
        assert "another secret" not in text


def test_change_needs_the_current_version(root: Administrator) -> None:
    provider = create(root)
    path = f"/identity-providers/{provider['id']}"
    tag = root.get(path).headers["ETag"]
    changed = root.request("PATCH", path, {"If-Match": tag}, json={"name": "Two", "position": 7})
    assert (changed.status_code, changed.json()["data"]["name"], changed.json()["data"]["position"]) == (200, "Two", 7)
    assert root.request("PATCH", path, {"If-Match": tag}, json={"name": "Three"}).status_code == 412
    assert root.request("DELETE", path, {"If-Match": tag}).status_code == 412
    assert root.data(path)["name"] == "Two"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"id": "A B"}, "id: must be 1 to 32 characters"),
        ({"kind": "saml"}, "kind: must be 'oidc', 'oauth2', 'steam', 'steam_ticket'"),
        ({"issuer": ""}, "issuer: is required for the kind oidc"),
        ({"issuer": "ftp://x"}, "issuer: "),
        ({"issuer": "https://user@x"}, "issuer: "),
        ({"kind": "oauth2"}, "authorization_url: is required for the kind oauth2"),
        ({"scopes": ["a b"]}, "scopes[0]: must not contain spaces"),
        ({"claims": {"login": "x"}}, "claims: expected the names"),
        ({"trusted_mail": True}, "trusted_mail: is unknown"),
        ({"position": "1"}, "position: must be an integer"),
    ],
)
def test_invalid_provider_is_refused_with_the_field(root: Administrator, fields: dict[str, Any], error: str) -> None:
    body = record(**fields)
    response = root.request("POST", "/identity-providers", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text
    assert root.get(f"/identity-providers/{body['id']}").status_code == 404


def test_taken_id_is_a_conflict_and_the_issuer_is_fixed(root: Administrator) -> None:
    provider = create(root)
    response = root.request("POST", "/identity-providers", json=record(id=provider["id"], name="After"))
    assert (response.status_code, response.json()["error"]) == (409, "id: is used by another identity provider")
    path = f"/identity-providers/{provider['id']}"
    moved = root.request("PATCH", path, json={"issuer": "https://other.example.com"})
    assert (moved.status_code, moved.json()["error"].startswith("issuer: cannot be changed")) == (400, True)
    renamed = root.request("PATCH", path, json={"id": "another"})
    assert (renamed.status_code, renamed.json()["error"]) == (400, "id: cannot be changed")
    assert root.data(path)["name"] == provider["name"]


def test_providers_are_listed_page_by_page(root: Administrator) -> None:
    ids = sorted(create(root)["id"] for _ in range(3))
    pages, after = [], ""
    while True:
        page = root.get("/identity-providers", limit=1, after=after).json()
        pages += [provider["id"] for provider in page["data"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert [provider_id for provider_id in pages if provider_id in ids] == ids
    assert pages == sorted(pages)


def test_only_root_decides_who_signs_in_users(root: Administrator, clerk: Administrator) -> None:
    """A provider signs in every user who is linked to it, so its operator could become any of them."""
    body = record()
    assert clerk.request("POST", "/identity-providers", json=body).status_code == 403
    assert root.get(f"/identity-providers/{body['id']}").status_code == 404
    urls = {f"{name}_url": f"https://id.example.com/{name}" for name in ("authorization", "token", "userinfo")}
    provider = create(root, kind="oauth2", issuer="", **urls)
    path = f"/identity-providers/{provider['id']}"
    for changes in (
        {"token_url": "https://evil.example.com/"},
        {"authorization_url": "https://evil.example.com/"},
        {"client_id": "another"},
        {"claims": {"subject": "name"}},
        {"scopes": ["all"]},
        {"trusted_email": True},
        {"trusted_second_factor": True},
        {"keep_tokens": True},
    ):
        refused = clerk.request("PATCH", path, json=changes)
        assert (refused.status_code, "root is required" in refused.json()["error"]) == (403, True), changes
    assert root.data(path) == provider
    same = {name: provider[name] for name in ("token_url", "client_id", "trusted_email", "kind")}
    assert clerk.request("PATCH", path, json={**same, "name": "Renamed"}).status_code == 200
    assert clerk.request("DELETE", path).status_code == 200


def test_linked_users_are_counted_and_changes_are_audited(server: Server, root: Administrator, studio: Studio) -> None:
    provider = create(root)
    path = f"/identity-providers/{provider['id']}"
    sql = "INSERT INTO linked_identities (id, provider_id, subject, user_id, last_used) VALUES ($1, $2, 's', $3, now())"
    query(server, sql, f"link of {provider['id']}", provider["id"], studio.user().user_id)
    assert root.get(path).json()["users"] == {"linked": 1, "without_other_sign_in": 0}
    root.request("PATCH", path, json={"name": "Two"})
    root.request("DELETE", path)
    entries = root.data("/audit", target=provider["id"])
    assert [(entry["operation"], entry["user_id"]) for entry in entries] == [
        (f"identity_provider.{name}", root.user_id) for name in ("delete", "save", "create")
    ]
    assert (entries[0]["before"]["name"], entries[0]["after"]) == ("Two", None)
