"""The discovery document, and the endpoints and keys that it lists."""

import pytest

from tests.kit.server import Server


@pytest.mark.parametrize("path", ["openid-configuration", "oauth-authorization-server"])
def test_discovery_document_matches_the_service(server: Server, path: str) -> None:
    with server.client() as client:
        response = client.get(f"/.well-known/{path}")
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        config = response.json()
        assert config["issuer"] == server.base_url
        for name in ("token_endpoint", "revocation_endpoint"):
            assert client.get(config[name].removeprefix(server.base_url)).status_code == 405
        assert client.get(config["userinfo_endpoint"].removeprefix(server.base_url)).status_code == 401
        assert client.get(config["authorization_endpoint"].removeprefix(server.base_url)).status_code == 400
        assert client.get(config["end_session_endpoint"].removeprefix(server.base_url)).status_code == 200
        keys = client.get(config["jwks_uri"].removeprefix(server.base_url)).json()["keys"]
        parts = {key["alg"]: set(key) - {"kty", "kid", "alg", "use"} for key in keys}
        assert parts == {"RS256": {"n", "e"}, "ES256": {"crv", "x", "y"}, "EdDSA": {"crv", "x"}}
        assert set(config["id_token_signing_alg_values_supported"]) == set(parts)
    assert config["response_types_supported"] == ["code"]
    assert config["response_modes_supported"] == ["query", "form_post"]
    assert config["code_challenge_methods_supported"] == ["S256"]
    assert config["scopes_supported"] == ["openid", "offline_access", "email", "profile", "trust"]
    assert "none" not in config["id_token_signing_alg_values_supported"]


def test_discovery_advertises_the_bearer_of_strict_clients(server: Server) -> None:
    """As an absolute URI, which collides with no registered method."""
    with server.client() as client:
        document = client.get("/.well-known/openid-configuration").json()
    value = f"{server.base_url}/client-authentication/sha1-bearer"
    assert document["token_endpoint_auth_methods_supported"][-1] == value
    assert value not in document["introspection_endpoint_auth_methods_supported"]


@pytest.mark.parametrize(
    ("api", "request_path"),
    [
        ("/api/admin", "/api/admin/users"),
        ("/api/permissions", "/api/permissions/check"),
        ("/access/v1", "/access/v1/evaluation"),
    ],
)
def test_refusals_of_an_api_lead_to_its_metadata(server: Server, api: str, request_path: str) -> None:
    """RFC 9728: from the address of an API alone, a program finds the authorization server."""
    question = {"subject": {"type": "user", "id": "1"}, "action": {"name": "x"}, "resource": {"type": "a", "id": "1"}}
    with server.client(headers={"Origin": "https://agent.example.com"}) as client:
        if api == "/api/admin":
            refused = client.get(request_path)
        else:
            refused = client.post(request_path, json=question | {"user_id": "1", "application_id": 1})
        assert refused.status_code == 401, refused.text
        metadata_url = f"{server.base_url}/.well-known/oauth-protected-resource{api}"
        assert refused.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{metadata_url}"'
        answer = client.get(metadata_url.removeprefix(server.base_url))
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        metadata = answer.json()
        assert metadata["resource"] == f"{server.base_url}{api}"
        assert metadata["authorization_servers"] == [server.base_url]
        root = client.get("/.well-known/oauth-protected-resource").json()
        assert root["resource"] == server.base_url
