"""Metadata of the APIs of this service as protected resources (RFC 9728), and the challenge that leads to it.

A program that knows nothing but the address of an API finds this service as the authorization server.
"""

from typing import Any

METADATA = "/.well-known/oauth-protected-resource"
# The paths of the APIs. Each has a document at the path of the metadata, followed by its own.
RESOURCES = {"/api/admin": "Management API", "/api/permissions": "Permission API", "/access/v1": "AuthZEN API"}
METADATA_PATHS = (METADATA, *(METADATA + path for path in RESOURCES))


def resource_metadata(base_url: str, path: str = "") -> dict[str, Any]:
    """``path`` is that of an API; "" for the service as a whole."""
    return {
        "resource": base_url + path,
        "resource_name": RESOURCES.get(path, "Management and permission APIs"),
        "authorization_servers": [base_url],
        "jwks_uri": f"{base_url}/proxy/oauth/keys",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base_url}/openapi.json",
    }


def metadata_challenges(base_url: str) -> dict[str, str]:
    """Returns what the challenge of a 401 says about the metadata, by the beginning of the path of a request."""
    return {f"{path}/": f'resource_metadata="{base_url}{METADATA}{path}"' for path in RESOURCES}
