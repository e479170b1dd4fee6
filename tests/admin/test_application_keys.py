"""Public keys, service JWTs and e-mail secrets of applications in the management API."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sso.core.keys import key_id, private_pem, public_pem
from tests.admin.conftest import Administrator, administrator
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio


@pytest.fixture(scope="module")
def keeper(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_applications")


@pytest.fixture
def application(studio: Studio) -> int:
    return studio.application()


def test_key_is_trusted_and_no_longer_trusted(
    studio: Studio, keeper: Administrator, root: Administrator, application: int
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem, kid, path = public_pem(key.public_key()), key_id(key.public_key()), f"/applications/{application}/keys"
    added = keeper.request("POST", path, json={"public_key": pem})
    assert (added.status_code, added.json()["data"]) == (201, {"kid": kid, "algorithm": "ES256", "public_key": pem})
    keys = {"status": "OK", "data": [added.json()["data"]], "next": None, "private_key": "none"}
    assert keeper.get(path).json() == keys
    read = keeper.get(f"{path}/{kid}")
    assert read.headers["ETag"] == added.headers["ETag"]
    assert keeper.request("DELETE", f"{path}/{kid}", {"If-Match": '"x"'}).status_code == 412
    assert keeper.request("DELETE", f"{path}/{kid}", {"If-Match": read.headers["ETag"]}).status_code == 200
    assert keeper.request("DELETE", f"{path}/{kid}").status_code == 404
    entries = root.data("/audit", target=f"{application}/{kid}", application_id=application)
    assert [(entry["operation"], entry["user_id"]) for entry in entries] == [
        ("application.key.remove", keeper.user_id),
        ("application.key.add", keeper.user_id),
    ]


@pytest.mark.parametrize("pem", ["no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", ""])
def test_unusable_key_is_refused(keeper: Administrator, application: int, pem: str) -> None:
    response = keeper.request("POST", f"/applications/{application}/keys", json={"public_key": pem})
    assert (response.status_code, response.json()["error"][:12]) == (400, "public_key: ")
    assert keeper.data(f"/applications/{application}/keys") == []


def test_key_of_service_meta_is_changed_there(keeper: Administrator, application: int) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    meta = {"service_meta": {"public_key": public_pem(key)}}
    assert keeper.request("PATCH", f"/applications/{application}", json=meta).status_code == 200
    response = keeper.request("DELETE", f"/applications/{application}/keys/{key_id(key)}")
    assert (response.status_code, "service_meta" in response.json()["error"]) == (409, True)


def test_service_jwt_is_issued_with_the_stored_key(
    studio: Studio, keeper: Administrator, root: Administrator, application: int
) -> None:
    path = f"/applications/{application}/service-jwt"
    refused = keeper.request("POST", path)
    assert (refused.status_code, "holds no private key" in refused.json()["error"]) == (409, True)
    key = ec.generate_private_key(ec.SECP256R1())
    meta = {"service_meta": {"private_key": private_pem(key), "public_key": public_pem(key.public_key())}}
    assert keeper.request("PATCH", f"/applications/{application}", json=meta).status_code == 200
    token = keeper.request("POST", path).json()["data"]["service_jwt"]
    assert studio.root.call("user/info", {"Service-Jwt": token, "Factor": ""}).status == 200
    (entry,) = root.data("/audit", operation="application.service_jwt", target=str(application))
    assert (entry["user_id"], token in str(entry)) == (keeper.user_id, False)


def test_email_secret_needs_the_right_to_see_users_and_is_audited(
    studio: Studio, keeper: Administrator, root: Administrator, application: int
) -> None:
    path = f"/applications/{application}/email-secret"
    refused = keeper.request("POST", path)
    assert (refused.status_code, refused.json()["error"]) == (403, "can_view_users is required")
    both = administrator(studio, "can_manage_applications", "can_view_users")
    secret = both.request("POST", path).json()["data"]["email_secret"]
    assert both.request("POST", path).json()["data"]["email_secret"] == secret
    entries = root.data("/audit", target=str(application), actor=both.user_id)
    assert [(entry["operation"], entry["after"]) for entry in entries] == [
        ("application.email_secret.read", {"read": True}),
        ("application.email_secret", {"email_secret": "…"}),
    ]


@pytest.mark.parametrize("had_secret", [False, True])
@pytest.mark.parametrize("removed", ["application", "project"])
def test_removed_application_has_no_email_secret(
    server: Server, studio: Studio, root: Administrator, removed: str, had_secret: bool
) -> None:
    project = studio.project()
    app = studio.application(project)
    path = f"/applications/{app}/email-secret"
    if had_secret:
        assert root.request("POST", path).status_code == 200
    record = f"/applications/{app}" if removed == "application" else f"/projects/{project}"
    assert root.request("DELETE", record).status_code == 200
    answer = root.request("POST", path)
    assert (answer.status_code, answer.json()["error"]) == (404, "application not found")
    command = server.sso("app", "email-secret", str(app), check=False)
    assert (command.returncode, f"there is no application {app}" in command.stderr) == (1, True)
    operations = [entry["operation"] for entry in root.data("/audit", target=str(app))]
    assert operations.count("application.email_secret") == had_secret
    assert "application.email_secret.read" not in operations


@pytest.mark.parametrize("path", ["keys", "service-jwt", "email-secret"])
def test_central_application_needs_root(keeper: Administrator, path: str) -> None:
    body = {"json": {"public_key": "x"}} if path == "keys" else {}
    response = keeper.request("POST", f"/applications/1/{path}", **body)
    assert (response.status_code, "root is required" in response.json()["error"]) == (403, True)


def test_project_is_listed_by_alias_with_numbers_of_its_records(studio: Studio, root: Administrator) -> None:
    project, member = studio.project(), studio.user()
    studio.application(project)
    studio.group(project)
    studio.join(project, member, project=["viewer"])
    alias = f"alias-of-{project}"[:60]
    assert root.request("PATCH", f"/projects/{project}", json={"aliases": [alias]}).status_code == 200
    (record,) = root.data("/projects", name=alias.upper(), counts=1)
    assert (record["id"], record["applications"], record["groups"], record["members"]) == (project, 1, 1, 2)
    assert root.data("/projects", name="no-such-project") == []
    assert "applications" not in root.data("/projects", name=project)[0]
    logins = {item["user_id"]: item["login"] for item in root.data(f"/projects/{project}/members")}
    assert logins[member.user_id] == member.login
