"""The module of the plan Config OP."""

from tests.conformance.relying_party import RelyingParty


def test_oidcc_discovery_endpoint_verification(rp: RelyingParty) -> None:
    document, base_url = rp.metadata, rp.site.server.base_url
    assert document["issuer"] == base_url
    for name in ("authorization", "token", "userinfo", "end_session", "revocation", "introspection"):
        assert document[f"{name}_endpoint"].startswith(f"{base_url}/")
    assert "openid" in document["scopes_supported"]
    assert document["response_types_supported"] == ["code"]
    assert set(document["response_modes_supported"]) == {"query", "form_post"}
    assert document["subject_types_supported"] == ["public"]
    assert "RS256" in document["id_token_signing_alg_values_supported"]
    assert {"client_secret_basic", "client_secret_post"} <= set(document["token_endpoint_auth_methods_supported"])
    assert {"sub", "iss", "aud", "exp", "iat"} <= set(document["claims_supported"])
    keys = rp.site.http.get(document["jwks_uri"]).json()["keys"]
    assert len({key["kid"] for key in keys}) == len(keys)
    for key in keys:
        assert key["use"] == "sig"
        assert not key.keys() & {"d", "p", "q", "dp", "dq", "qi", "k"}  # no private keys
