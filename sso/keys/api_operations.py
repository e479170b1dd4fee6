"""Describes the published key set."""

from sso.keys.routes import PATHS
from sso.web.api_description import OBJECT, STRING, ApiOperation, ok, properties

_KEY = properties(("kid", "kty"), kid=STRING, kty=STRING, alg=STRING, use=STRING)
_EXAMPLE = {"keys": [{"kid": "2026-11", "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": "…", "y": "…"}]}

OPERATIONS = tuple(
    ApiOperation(
        "GET",
        path,
        "Keys",
        "Read the public signing keys",
        {
            200: ok(
                "A JWK set.",
                properties(("keys",), keys={"type": "array", "items": {**OBJECT, **_KEY}}),
                _EXAMPLE,
                ETag="the version of the key set",
            )
        },
        "A new key is published 15 seconds before it signs, and the set may be cached for 10 seconds.",
    )
    for path in PATHS
)
