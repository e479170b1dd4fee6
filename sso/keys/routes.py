"""The published key set, at both of its addresses."""

from quart import Blueprint, Response

from sso.keys.keyset import KeySet
from sso.web.http import reply_bytes

# Short enough that everybody has seen a new key before it signs.
HEADERS = {"Cache-Control": "public, max-age=10", "Access-Control-Allow-Origin": "*"}


def key_routes(keys: KeySet) -> Blueprint:
    routes = Blueprint("keys", __name__)

    @routes.get("/proxy/oauth/keys")
    @routes.get("/api/permissions/keys")
    async def jwks() -> Response:
        return reply_bytes(keys.jwks, headers=HEADERS)

    return routes
