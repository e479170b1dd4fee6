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
