"""The published JWK set, at both of its paths."""

from collections.abc import Mapping

from quart import Blueprint, Response

from sso.keys.keyset import KeySet
from sso.web.access_log import AccessLog
from sso.web.response import JSON_TYPE, reply_json_bytes
from sso.web.static_response import StaticResponse

PATHS = ("/proxy/oauth/keys", "/api/permissions/keys")
# Clients must fetch a new key before it signs, so this is less than LEAD_S.
HEADERS = {"Cache-Control": "public, max-age=10", "Access-Control-Allow-Origin": "*", "Vary": "Origin"}


def key_routes(keys: KeySet) -> Blueprint:
    routes = Blueprint("keys", __name__)

    @routes.get(PATHS[0])
    @routes.get(PATHS[1])
    async def jwks() -> Response:
        return reply_json_bytes(keys.jwks, headers=HEADERS)

    return routes


def static_key_responses(keys: KeySet, headers: Mapping[str, str], access_log: AccessLog) -> dict[str, StaticResponse]:
    """Returns prebuilt responses for the key set, which clients request often."""
    return {
        path: StaticResponse(path, lambda: keys.jwks, JSON_TYPE, {**headers, **HEADERS}, access_log) for path in PATHS
    }
