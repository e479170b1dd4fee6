"""OAuth clients in the management API."""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import each_worker, query
from tests.kit.oauth import Site, close_all, new_browser, new_site
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

pytestmark = pytest.mark.two_workers

URI = "https://shop.example.com/callback"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def clerk(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_clients")


@pytest.fixture(autouse=True, scope="module")
def closed_connections() -> Iterator[None]:
    yield
    close_all()


def new_id() -> str:
    return f"managed-client-{next(_numbers)}"


def create(caller: Administrator, **fields: Any) -> dict[str, Any]:
    body = {"client_id": new_id(), "profile": "oidc", "redirect_uris": [URI], **fields}
    response = caller.request("POST", "/clients", json=body)
    assert response.status_code == 201, response.text
    client: dict[str, Any] = response.json()["data"]
    return client


def service_fields(application_id: int) -> dict[str, Any]:
    return {"grant_types": ["client_credentials"], "application_id": application_id}


def token_status(http: httpx.Client, client_id: str, secret: str) -> int:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    return http.post("/proxy/oauth/token", data=form).status_code


def test_created_client_has_a_secret_that_is_shown_once(clerk: Administrator) -> None:
    body = {"client_id": new_id(), "name": "Tank Shop", "profile": "oidc", "redirect_uris": [URI]}
    response = clerk.request("POST", "/clients", json=body)
    client = response.json()["data"]
    secret = client.pop("client_secret")
    assert (response.status_code, len(secret) > 20, client["name"], client["disabled"]) == (
        201,
        True,
        "Tank Shop",
        False,
    )
    read = clerk.get(f"/clients/{client['client_id']}")
    assert (read.json()["data"], read.headers["ETag"]) == (client, response.headers["ETag"])
    assert secret not in read.text
    assert "sealed" not in read.text


def test_removed_redirect_uri_ends_the_tokens_of_a_created_client(server: Server, clerk: Administrator) -> None:
    client = create(clerk)
    site = Site(server, client["client_id"], client["client_secret"], URI)
    tokens = site.tokens(new_browser(server).sign_in())
    assert site.userinfo(tokens["access_token"]).status_code == 200
    clerk.request("PATCH", f"/clients/{client['client_id']}", json={"redirect_uris": ["https://new.example.com/"]})
    assert site.userinfo(tokens["access_token"]).status_code == 401


def test_given_secret_is_not_shown(clerk: Administrator) -> None:
    secret = "a secret of at least sixteen"
    client = create(clerk, client_secret=secret)
    assert "client_secret" not in client
    assert len(client["secrets"]) == 1


def test_public_client_has_no_secret(clerk: Administrator) -> None:
    client = create(clerk, public=True)
    assert (client["public"], client["secrets"], "client_secret" in client) == (True, [], False)
    refused = clerk.request("POST", f"/clients/{client['client_id']}/rotate-secret")
    assert (refused.status_code, refused.json()["error"]) == (
        409,
        "the client has no secret: it is public or uses private_key_jwt",
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"client_id": "a b"}, "client_id: must be 1 to 64 letters"),
        ({"client_secret": "short"}, "client_secret: must have a length of at least 16"),
        ({"redirect_urls": [URI]}, "redirect_urls: is unknown"),
        ({"redirect_uris": ["ftp://x"]}, "redirect_uris[0]: expected an absolute http or https URI"),
        ({"redirect_uris": [URI, "https://a/?code=1"]}, "redirect_uris[1]: its query must not have code"),
        ({"redirect_uris": "x"}, "redirect_uris: must be an array"),
        ({"redirect_hosts": ["[::::]"], "redirect_uris": []}, "redirect_hosts[0]: must be a host name in lower case"),
        ({"public": True, "client_secret": "a secret of at least sixteen"}, "public: needs the profile oidc"),
        ({"public": True, "profile": "strict"}, "public: needs the profile oidc"),
        ({"grant_types": ["client_credentials"]}, "grant_types: client_credentials needs application_id"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "jwks: is required for private_key_jwt"),
        ({"jwks": {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}}, "jwks"),
    ],
)
def test_invalid_client_is_refused_with_the_field(root: Administrator, fields: dict[str, Any], error: str) -> None:
    body = {"client_id": new_id(), "profile": "oidc", "redirect_uris": [URI], **fields}
    response = root.request("POST", "/clients", json=body)
    assert (response.status_code, response.json()["error"].startswith(error)) == (400, True), response.text
    assert root.get(f"/clients/{body['client_id']}").status_code == 404


def test_taken_client_id_is_a_conflict_and_changes_nothing(clerk: Administrator) -> None:
    client = create(clerk, name="Before")
    body = {"client_id": client["client_id"], "name": "After"}
    response = clerk.request("POST", "/clients", json=body)
    assert (response.status_code, response.json()["error"]) == (409, "client_id: is used by another client")
    assert clerk.data(f"/clients/{client['client_id']}")["name"] == "Before"


def test_change_needs_the_current_version(clerk: Administrator) -> None:
    client = create(clerk)
    path = f"/clients/{client['client_id']}"
    tag = clerk.get(path).headers["ETag"]
    changed = clerk.request("PATCH", path, {"If-Match": tag}, json={"name": "Two"})
    assert (changed.status_code, changed.json()["data"]["name"]) == (200, "Two")
    for method in ("PATCH", "DELETE"):
        stale = clerk.request(method, path, {"If-Match": tag}, **({"json": {"name": "3"}} if method == "PATCH" else {}))
        assert stale.status_code == 412, method
    for operation in ("rotate-secret", "refuse"):
        assert clerk.request("POST", f"{path}/{operation}", {"If-Match": tag}).status_code == 412, operation
    assert clerk.data(path)["name"] == "Two"
    refused = clerk.request("PATCH", path, json={"client_id": "another"})
    assert (refused.status_code, refused.json()["error"]) == (400, "client_id: cannot be changed")


def test_only_a_client_that_waits_for_approval_is_refused(clerk: Administrator, root: Administrator) -> None:
    waiting, approved = (f"/clients/{create(clerk, approved=value)['client_id']}" for value in (False, True))
    assert clerk.request("POST", f"{waiting}/refuse").status_code == 200
    assert clerk.request("POST", f"{waiting}/refuse").status_code == 404
    refused = clerk.request("POST", f"{approved}/refuse")
    assert (refused.status_code, refused.json()["error"]) == (409, "the client does not wait for approval")
    assert clerk.data(approved)["approved"] is True
    assert root.data("/audit", operation="client.delete", target=waiting.rpartition("/")[2])


def test_disabled_client_is_refused_on_every_worker(server: Server, root: Administrator, studio: Studio) -> None:
    client = create(root, **service_fields(studio.application()))
    client_id, secret = client["client_id"], client["client_secret"]
    with each_worker(server) as workers:
        assert [token_status(worker, client_id, secret) for worker in workers] == [200, 200]
        assert root.request("PATCH", f"/clients/{client_id}", json={"disabled": True}).status_code == 200
        assert [token_status(worker, client_id, secret) for worker in workers] == [401, 401]


def test_deleted_client_and_its_tokens_end_on_every_worker(server: Server, root: Administrator, studio: Studio) -> None:
    client = create(root, **service_fields(1))
    form = {
        "grant_type": "client_credentials",
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
    }
    token = root.client.post("/proxy/oauth/token", data=form).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    with each_worker(server) as workers:
        callers = [Administrator(worker, headers) for worker in workers]
        assert [caller.get("/clients").status_code for caller in callers] == [200, 200]
        assert root.request("DELETE", f"/clients/{client['client_id']}").status_code == 200
        assert [caller.get("/clients").status_code for caller in callers] == [401, 401]
        assert [token_status(worker, client["client_id"], client["client_secret"]) for worker in workers] == [401, 401]
    assert root.get(f"/clients/{client['client_id']}").status_code == 404
    assert root.request("DELETE", f"/clients/{client['client_id']}").status_code == 404


def test_refresh_token_of_a_deleted_client_is_refused_on_every_worker(server: Server, root: Administrator) -> None:
    """Also on workers that have the client in their cache."""
    site = new_site(server, profile="oidc")
    browsers = [new_browser(server).sign_in() for _ in range(2)]
    tokens = [site.tokens(browser)["refresh_token"] for browser in browsers]
    with each_worker(server) as workers:
        for number, worker in enumerate(workers):
            site.http = worker
            tokens[number] = site.refresh(tokens[number]).json()["refresh_token"]
        assert root.request("DELETE", f"/clients/{site.client_id}").status_code == 200
        for worker, token in zip(workers, tokens, strict=True):
            site.http = worker
            answer = site.refresh(token)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")  # no profile is known
    close_all()


def test_rotation_keeps_the_old_secret_until_it_is_finished(
    server: Server, root: Administrator, studio: Studio
) -> None:
    client = create(root, **service_fields(studio.application()))
    client_id, old = client["client_id"], client["client_secret"]
    path = f"/clients/{client_id}"
    before = root.get(path).headers["ETag"]
    rotated = root.request("POST", f"{path}/rotate-secret")
    new = rotated.json()["data"]["client_secret"]
    assert rotated.headers["ETag"] == root.get(path).headers["ETag"] != before
    assert new not in root.get(path).text
    with each_worker(server) as workers:
        for worker in workers:
            assert [token_status(worker, client_id, secret) for secret in (old, new)] == [200, 200]
        finished = root.request("POST", f"{path}/rotate-secret", json={"finish": True})
        assert "client_secret" not in finished.json()["data"]
        assert len(finished.json()["data"]["secrets"]) == 1
        for worker in workers:
            assert [token_status(worker, client_id, secret) for secret in (old, new)] == [401, 200]


def test_overlap_ends_the_old_secret(root: Administrator, studio: Studio) -> None:
    client = create(root, **service_fields(studio.application()))
    path = f"/clients/{client['client_id']}/rotate-secret"
    rotated = root.request("POST", path, json={"overlap": 0, "expires_in": 3600}).json()["data"]
    (newest,) = rotated["secrets"]
    assert newest["expires_at"] == rotated["client_secret_expires_at"]
    assert token_status(root.client, client["client_id"], client["client_secret"]) == 401
    assert token_status(root.client, client["client_id"], rotated["client_secret"]) == 200
    longer = root.request("POST", path, json={"overlap": 3600}).json()["data"]
    assert token_status(root.client, client["client_id"], rotated["client_secret"]) == 200
    assert token_status(root.client, client["client_id"], longer["client_secret"]) == 200
    for body in ({"overlap": -1}, {"overlap": "1"}, {"finish": True, "overlap": 1}, {"over": 1}):
        assert root.request("POST", path, json=body).status_code == 400, body


def test_clients_are_listed_page_by_page_and_found_by_prefix(clerk: Administrator) -> None:
    prefix = f"paged{next(_numbers)}-"
    ids = [
        create(clerk, client_id=f"{prefix}{letter}", name=f"Name of {prefix}{letter}")["client_id"] for letter in "bac"
    ]
    first = clerk.get("/clients", search=prefix.upper(), limit=2).json()
    second = clerk.get("/clients", search=prefix, limit=2, after=first["next"]).json()
    assert [client["client_id"] for client in first["data"] + second["data"]] == sorted(ids)
    assert second["next"] is None
    assert [client["client_id"] for client in clerk.data("/clients", search=f"name of {prefix}b")] == [f"{prefix}b"]
    assert clerk.data("/clients", search=f"{prefix}%") == []
    assert clerk.get("/clients", search=prefix, limit=0).status_code == 400


def test_only_root_manages_clients_with_rights_over_the_service(
    root: Administrator, clerk: Administrator, studio: Studio
) -> None:
    """A service client of the central application has every right, and a first-party client those of its users."""
    for fields in (service_fields(1), {"first_party": True}, {"application_id": 1}):
        body = {"client_id": new_id(), "profile": "oidc", "redirect_uris": [URI], **fields}
        assert clerk.request("POST", "/clients", json=body).status_code == 403, fields
        assert root.get(f"/clients/{body['client_id']}").status_code == 404
        own = create(clerk)
        refused = clerk.request("PATCH", f"/clients/{own['client_id']}", json=fields)
        assert (refused.status_code, "root is required" in refused.json()["error"]) == (403, True), fields
        assert clerk.data(f"/clients/{own['client_id']}")["application_id"] == 0
        of_root = f"/clients/{create(root, **fields)['client_id']}"
        before = root.data(of_root)
        for method, path, options in (
            ("PATCH", of_root, {"json": {"client_secret": "a secret of at least sixteen"}}),
            ("PATCH", of_root, {"json": {"redirect_uris": ["https://evil.example.com/"]}}),
            ("PATCH", of_root, {"json": {"first_party": False, "application_id": 0}}),
            ("PATCH", of_root, {"json": {"disabled": True}}),
            ("POST", f"{of_root}/rotate-secret", {}),
            ("DELETE", of_root, {}),
        ):
            assert clerk.request(method, path, **options).status_code == 403, (fields, method, options)
        assert root.data(of_root) == before


def test_client_of_an_application_needs_the_right_to_manage_applications(clerk: Administrator, studio: Studio) -> None:
    """Its tokens may change the permissions of every user at the application."""
    application_id = studio.application()
    both = administrator(studio, "can_manage_clients", "can_manage_applications")
    body = {"client_id": new_id(), "profile": "oidc", **service_fields(application_id)}
    refused = clerk.request("POST", "/clients", json=body)
    assert (refused.status_code, refused.json()["error"]) == (
        403,
        "can_manage_applications is required for a client with application_id",
    )
    assert both.request("POST", "/clients", json=body).status_code == 201
    assert clerk.request("POST", f"/clients/{body['client_id']}/rotate-secret").status_code == 403
    assert both.request("POST", f"/clients/{body['client_id']}/rotate-secret").status_code == 200


def test_missing_application_is_a_warning(root: Administrator) -> None:
    body = {"client_id": new_id(), "profile": "oidc", **service_fields(123456)}
    response = root.request("POST", "/clients", json=body)
    assert response.json()["warnings"] == ["application_id: there is no application 123456 yet"]


def test_redirect_uri_without_tls_is_a_warning(root: Administrator) -> None:
    uris = ["http://shop.example/cb", "http://localhost:5000/cb", "https://shop.example/cb"]
    response = root.request("POST", "/clients", json={"client_id": new_id(), "profile": "oidc", "redirect_uris": uris})
    text = "redirect_uris: http://shop.example/cb is not https, so codes that are sent there can be read on the way"
    assert response.json()["warnings"] == [text]


def test_every_change_is_in_the_audit_trail_without_secrets(
    server: Server, clerk: Administrator, root: Administrator
) -> None:
    client = create(clerk, name="One")
    client_id, path = client["client_id"], f"/clients/{client['client_id']}"
    clerk.request("PATCH", path, json={"name": "Two", "client_secret": "a secret of at least sixteen"})
    rotated = clerk.request("POST", f"{path}/rotate-secret").json()["data"]
    clerk.request("DELETE", path)
    entries = root.data("/audit", target=client_id)
    assert [entry["operation"] for entry in entries] == [
        "client.delete", "client.rotate_secret", "client.save", "client.create",
    ]  # fmt: skip
    assert {entry["user_id"] for entry in entries} == {clerk.user_id}
    deleted, rotation, changed, _ = entries
    assert (changed["before"]["name"], changed["after"]["name"]) == ("One", "Two")
    assert (len(rotation["before"]["secrets"]), len(rotation["after"]["secrets"])) == (1, 2)
    assert (deleted["before"]["name"], deleted["after"]) == ("Two", None)
    (stored,) = query(server, "SELECT string_agg(a::text, ' ') FROM audit a WHERE target = $1", client_id)
    secrets = (client["client_secret"], rotated["client_secret"], "a secret of at least sixteen")
    assert [secret for secret in secrets if secret in stored[0] or secret in server.log()] == []


def test_end_of_a_secret_is_changed_and_must_be_a_number(root: Administrator) -> None:
    created = {"client_id": "ending", "profile": "oidc", "redirect_uris": ["https://ending.example.com/callback"]}
    assert root.request("POST", "/clients", json=created).status_code == 201
    answer = root.request("PATCH", "/clients/ending", json={"client_secret_expires_at": 2051222400})
    assert (answer.status_code, answer.json()["data"]["client_secret_expires_at"]) == (200, 2051222400)
    assert root.request("PATCH", "/clients/ending", json=answer.json()["data"]).status_code == 200
    assert root.request("PATCH", "/clients/ending", json={"client_secret_expires_at": "soon"}).status_code == 400
    assert root.data("/clients/ending")["client_secret_expires_at"] == 2051222400
