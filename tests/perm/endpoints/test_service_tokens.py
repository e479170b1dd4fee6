"""Access tokens of service clients (client_credentials) are accepted where the application's service JWT is."""

import json
from typing import Any

import httpx
import pytest

from tests.kit.dpop import DpopKey
from tests.kit.oauth import INTROSPECT, REVOKE, TOKEN, USERINFO, Browser, Site, error_of, new_site
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, Studio

GRANT = {"grant_type": "client_credentials"}


def new_service(studio: Studio, application_id: int, **fields: Any) -> Site:
    attributes = {"profile": "oidc", "grant_types": ["client_credentials"], "redirect_hosts": [], **fields}
    return new_site(studio.server, application_id=application_id, **attributes)


def service_token(service: Site) -> str:
    response = service.http.post(TOKEN, data=GRANT, headers=service.basic())
    assert response.status_code == 200, response.text
    assert response.headers["Cache-Control"] == "no-store"
    data = response.json()
    assert {name: type(value) for name, value in data.items()} == {
        "access_token": str,
        "token_type": str,
        "expires_in": int,
    }
    return str(data["access_token"])


@pytest.fixture(scope="module")
def own(studio: Studio) -> int:
    return studio.application(studio.project())


@pytest.fixture(scope="module")
def service(studio: Studio, own: int) -> Site:
    return new_service(studio, own)


def read_data(studio: Studio, application_id: int, token: str) -> ApiResponse:
    """Reads the caller's own data without the factor, which a service credential of the application replaces."""
    body = {"action": "get", "application_id": application_id, "data": {"type": "list"}}
    return studio.root.call("meta/data", {"Factor": "", "Service-Jwt": token}, **body)


def test_token_replaces_the_factor_at_its_application_only(studio: Studio, own: int, service: Site) -> None:
    stranger = studio.application(studio.project())
    for _ in range(2):  # the second time, the client is cached
        token = service_token(service)
        assert read_data(studio, own, token).status == 200
        assert read_data(studio, stranger, token).status in (401, 403)
    assert read_data(studio, own, "").status == 401
    assert read_data(studio, own, token[:-1] + ("A" if token[-1] != "A" else "B")).status == 401
    forged = f"app{stranger}.{token.partition('.')[2]}"
    assert read_data(studio, stranger, forged).status == 401


def test_token_ends_with_its_client(studio: Studio, own: int) -> None:
    service = new_service(studio, own)
    usual = {"disabled": False, "application_id": own, "grant_types": ["client_credentials"]}
    other = studio.application(studio.project())
    for change in ({"disabled": True}, {"application_id": other}, {"grant_types": ["authorization_code"]}):
        token = service_token(service)
        assert read_data(studio, own, token).status == 200
        studio.server.apply({"clients": [{"client_id": service.client_id, **change}]})
        assert read_data(studio, own, token).status == 401, change
        studio.server.apply({"clients": [{"client_id": service.client_id, **usual}]})


def test_token_can_be_revoked_by_its_client_only(studio: Studio, own: int, service: Site) -> None:
    token = service_token(service)
    other = new_service(studio, own)
    assert other.http.post(REVOKE, data={"token": token}, headers=other.basic()).status_code == 200
    assert read_data(studio, own, token).status == 200
    assert service.http.post(REVOKE, data={"token": token}, headers=service.basic()).status_code == 200
    assert read_data(studio, own, token).status == 401


def test_token_is_no_access_token_of_a_user(service: Site) -> None:
    token = service_token(service)
    assert error_of(service.http.get(USERINFO, headers={"Authorization": f"Bearer {token}"})) == (401, "invalid_token")


def test_client_credentials_need_authentication_and_the_grant_type(studio: Studio, own: int, service: Site) -> None:
    def ask(headers: dict[str, str], **fields: str) -> tuple[int, str]:
        return error_of(service.http.post(TOKEN, data={**GRANT, **fields}, headers=headers))

    assert ask(service.basic("wrong")) == (401, "invalid_client")
    assert ask({}) == (401, "invalid_client")
    assert ask({}, client_id=service.client_id) == (401, "invalid_client")
    assert ask(service.bearer(""), client_id=service.client_id) == (400, "unsupported_grant_type")  # of strict clients
    assert ask(service.basic(), scope="openid") == (400, "invalid_scope")
    site = new_site(studio.server, profile="oidc")
    assert ask(site.basic()) == (400, "unauthorized_client")
    missing = new_service(studio, 2_000_000_001)
    assert ask(missing.basic()) == (400, "unauthorized_client")


@pytest.mark.parametrize(
    "fields",
    [{"application_id": 0}, {"profile": "strict"}, {"client_secret": None, "token_endpoint_auth_method": "none"}],
)
def test_service_clients_need_an_application_and_a_secret(studio: Studio, own: int, fields: dict[str, Any]) -> None:
    record = {
        "client_id": "wrong-service",
        "client_secret": "0123456789abcdef",
        "profile": "oidc",
        "grant_types": ["client_credentials"],
        "application_id": own,
        **fields,
    }
    document = {"clients": [{name: value for name, value in record.items() if value is not None}]}
    result = studio.server.sso("apply", "-", stdin=json.dumps(document), check=False)
    assert result.returncode == 1
    assert "clients[0]" in result.stderr


# Introspection


@pytest.fixture(scope="module")
def resource_server(studio: Studio, own: int) -> Site:
    return new_site(studio.server, profile="oidc", resource_server=True, application_id=own)


def introspect(site: Site, token: str) -> dict[str, Any]:
    response = site.http.post(INTROSPECT, data={"token": token}, headers=site.basic())
    assert response.status_code == 200, response.text
    assert response.headers["Cache-Control"] == "no-store"
    data: dict[str, Any] = response.json()
    return data


def test_resource_server_introspects_tokens_of_its_application(
    studio: Studio, own: int, service: Site, resource_server: Site
) -> None:
    token = service_token(service)
    claims = introspect(resource_server, token)
    assert claims.pop("exp") > 0
    assert claims == {
        "active": True,
        "iss": studio.server.base_url,
        "client_id": service.client_id,
        "sub": service.client_id,
        "application_id": own,
        "token_type": "Bearer",
    }
    site = new_site(studio.server, profile="oidc", application_id=own)
    tokens = site.tokens(Browser(studio.server, studio.root.login).sign_in(), scope="openid email offline_access")
    claims = introspect(resource_server, tokens["access_token"])
    assert (claims["active"], claims["sub"], claims["scope"]) == (
        True,
        studio.root.user_id,
        "openid offline_access email",
    )
    assert introspect(resource_server, tokens["refresh_token"]) == {"active": False}
    assert introspect(resource_server, tokens["id_token"]) == {"active": False}
    site.revoke(tokens["refresh_token"])
    assert introspect(resource_server, tokens["access_token"]) == {"active": False}
    service.http.post(REVOKE, data={"token": token}, headers=service.basic())
    assert introspect(resource_server, token) == {"active": False}


@pytest.mark.parametrize("removed", ["application", "project"])
def test_token_ends_everywhere_with_its_application(studio: Studio, removed: str) -> None:
    project_id = studio.project()
    own, client, root = studio.application(project_id), httpx.Client(base_url=studio.server.base_url), studio.root
    path = f"/api/admin/applications/{own}" if removed == "application" else f"/api/admin/projects/{project_id}"
    service = new_service(studio, own)
    api = new_site(studio.server, profile="oidc", resource_server=True, application_id=own)
    token, form = service_token(service), GRANT | {"scope": "ssf.read"}
    scoped = service.http.post(TOKEN, data=form, headers=service.basic()).json()["access_token"]

    def uses() -> list[object]:
        def get(path: str, token: str) -> int:
            return client.get(path, headers={"Authorization": f"Bearer {token}"}).status_code

        return [
            introspect(api, token)["active"],
            introspect(api, scoped)["active"],
            get("/ssf/stream", scoped),
            get("/api/admin/changes", token),
            read_data(studio, own, token).status,
        ]

    with client:
        headers = {"Authorization": f"Bearer {root.jwt}", "Factor": FACTOR}
        assert uses() == [True, True, 200, 200, 200]
        assert client.delete(path, headers=headers).status_code == 200
        assert uses() == [False, False, 401, 401, 401]
        assert client.post(f"{path}/restore", headers=headers).status_code == 200
        assert uses() == [True, True, 200, 200, 200]


def test_tokens_of_other_applications_are_not_active(studio: Studio, resource_server: Site) -> None:
    stranger = new_service(studio, studio.application(studio.project()))
    assert introspect(resource_server, service_token(stranger)) == {"active": False}
    without = new_site(studio.server, profile="oidc")
    tokens = without.tokens(Browser(studio.server, studio.root.login).sign_in())
    assert introspect(resource_server, tokens["access_token"]) == {"active": False}
    assert introspect(resource_server, "unknown") == {"active": False}


def test_introspection_needs_an_authenticated_resource_server(service: Site, resource_server: Site) -> None:
    def ask(site: Site, headers: dict[str, str], **fields: str) -> tuple[int, str]:
        return error_of(site.http.post(INTROSPECT, data=fields, headers=headers))

    assert ask(service, service.basic(), token="x") == (403, "unauthorized_client")
    assert ask(resource_server, resource_server.basic("wrong"), token="x") == (401, "invalid_client")
    assert ask(resource_server, {}, token="x") == (401, "invalid_client")
    assert ask(resource_server, {}, token="x", client_id=resource_server.client_id) == (401, "invalid_client")
    assert ask(resource_server, resource_server.bearer(""), client_id=resource_server.client_id, token="x") == (
        401,
        "invalid_client",
    )
    assert ask(resource_server, resource_server.basic()) == (400, "invalid_request")


def test_bound_token_is_refused_without_its_key_and_introspected_with_it(
    studio: Studio, own: int, service: Site, resource_server: Site
) -> None:
    key = DpopKey()
    answer = service.http.post(TOKEN, data=GRANT, headers=service.basic() | key.headers(service))
    assert answer.json()["token_type"] == "DPoP"
    token = answer.json()["access_token"]
    assert read_data(studio, own, token).status == 401
    claims = introspect(resource_server, token)
    assert (claims["token_type"], claims["cnf"]) == ("DPoP", {"jkt": key.jkt})


def test_service_whose_tokens_must_be_bound(studio: Studio, own: int) -> None:
    service = new_service(studio, own, dpop_bound_access_tokens=True)
    for _ in range(2):  # the second time, the client is cached
        assert error_of(service.http.post(TOKEN, data=GRANT, headers=service.basic())) == (400, "invalid_dpop_proof")
    headers = service.basic() | DpopKey().headers(service)
    assert service.http.post(TOKEN, data=GRANT, headers=headers).status_code == 200
    assert error_of(service.http.post(TOKEN, data=GRANT, headers=headers)) == (400, "invalid_dpop_proof")


def test_token_for_a_resource_server_is_introspected_by_it_and_refused_elsewhere(
    studio: Studio, own: int, service: Site
) -> None:
    other = studio.application(studio.project())
    api = new_site(studio.server, profile="oidc", resource_server=True, application_id=other)
    stranger = new_site(
        studio.server, profile="oidc", resource_server=True, application_id=other, redirect_uri="https://b.example.com/"
    )
    form = {**GRANT, "resource": api.client_id}
    token = service.http.post(TOKEN, data=form, headers=service.basic()).json()["access_token"]
    claims = introspect(api, token)
    assert claims["aud"] == [service.server.base_url, api.client_id]
    assert claims["application_id"] == own
    assert introspect(stranger, token) == {"active": False}
    # The resource server must not use the token for the rights of the service.
    assert read_data(studio, own, token).status == 401
    form = {**GRANT, "resource": "unknown"}
    assert error_of(service.http.post(TOKEN, data=form, headers=service.basic())) == (400, "invalid_target")
