"""The discovery document (OpenID Connect Discovery, RFC 8414). It lists everything that the service supports."""

from collections.abc import Sequence
from typing import Any, get_args

from sso.accounts.authentication_context import ACR_VALUES
from sso.core.algorithms import CLIENT_ALGORITHMS
from sso.core.language_names import LANGUAGES
from sso.oauth.model import PROMPTS, RESPONSE_MODES, SCOPES, TOKEN_EXCHANGE, GrantType

SHA1_BEARER = "/client-authentication/sha1-bearer"  # under the address of the service; a name, not a page


def discovery_document(base_url: str, algorithms: Sequence[str]) -> dict[str, Any]:
    auth_methods = ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]
    return {
        "issuer": base_url,
        "authorization_endpoint": f"{base_url}/proxy/oauth/authorize",
        "token_endpoint": f"{base_url}/proxy/oauth/token",
        "userinfo_endpoint": f"{base_url}/proxy/oauth/userinfo",
        "jwks_uri": f"{base_url}/proxy/oauth/keys",
        "revocation_endpoint": f"{base_url}/proxy/oauth/token/revoke",
        "introspection_endpoint": f"{base_url}/proxy/oauth/introspect",
        "device_authorization_endpoint": f"{base_url}/proxy/oauth/device_authorization",
        "pushed_authorization_request_endpoint": f"{base_url}/proxy/oauth/par",
        "require_pushed_authorization_requests": False,
        "end_session_endpoint": f"{base_url}/proxy/oauth/logout",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": list(RESPONSE_MODES),
        "grant_types_supported": [*get_args(GrantType), TOKEN_EXCHANGE],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": list(algorithms),
        # An absolute URI is a value of its own without registration (RFC 7591 section 2): the bearer of strict clients.
        "token_endpoint_auth_methods_supported": [*auth_methods, base_url + SHA1_BEARER],
        "revocation_endpoint_auth_methods_supported": auth_methods,
        "introspection_endpoint_auth_methods_supported": [method for method in auth_methods if method != "none"],
        "introspection_endpoint_auth_signing_alg_values_supported": list(CLIENT_ALGORITHMS),
        "token_endpoint_auth_signing_alg_values_supported": list(CLIENT_ALGORITHMS),
        "revocation_endpoint_auth_signing_alg_values_supported": list(CLIENT_ALGORITHMS),
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": list(CLIENT_ALGORITHMS),
        "acr_values_supported": list(ACR_VALUES),
        "prompt_values_supported": sorted(PROMPTS),
        "claim_types_supported": ["normal"],
        "claims_supported": [
            "iss", "sub", "aud", "azp", "exp", "iat", "auth_time", "acr", "amr", "nonce", "sid", "email",
            "email_verified", "name", "nickname", "preferred_username", "locale", "updated_at", "phone_verified",
        ],
        "backchannel_logout_supported": True,
        "backchannel_logout_session_supported": True,
        "ui_locales_supported": list(LANGUAGES),
        "claims_parameter_supported": True,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "require_request_uri_registration": False,
        "authorization_response_iss_parameter_supported": True,
    }  # fmt: skip
