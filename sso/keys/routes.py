"""The published key set, at both of its addresses."""

from collections.abc import Mapping

from quart import Blueprint, Response

from sso.keys.keyset import KeySet
from sso.web.access_log import AccessLog
from sso.web.response import JSON_TYPE, reply_json_bytes
from sso.web.static_response import StaticResponse

PATHS = ("/proxy/oauth/keys", "/api/permissions/keys")
# Short enough that everybody has seen a new key before it signs.
HEADERS = {"Cache-Control": "public, max-age=10", "Access-Control-Allow-Origin": "*"}


def key_routes(keys: KeySet) -> Blueprint:
    routes = Blueprint("keys", __name__)

    @routes.get(PATHS[0])
    @routes.get(PATHS[1])
    async def jwks() -> Response:
        return reply_json_bytes(keys.jwks, headers=HEADERS)

    return routes


def static_key_responses(keys: KeySet, headers: Mapping[str, str], told: AccessLog) -> dict[str, StaticResponse]:
    """Every token that is checked somewhere begins with a request for them."""
    return {path: StaticResponse(path, lambda: keys.jwks, JSON_TYPE, {**headers, **HEADERS}, told) for path in PATHS}
