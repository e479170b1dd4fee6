"""The endpoints that clients call: token, revocation, pushed requests, userinfo, token exchange, discovery."""

from quart import Blueprint, Response, request

from sso.keys.keyset import KeySet
from sso.keys.routes import PATHS as KEY_PATHS
from sso.oauth.client_assertions import ClientAssertions
from sso.oauth.client_auth import ClientCredentials, bearer_token, client_credentials
from sso.oauth.discovery import discovery_document
from sso.oauth.errors import InvalidRequest
from sso.oauth.introspection import Introspection
from sso.oauth.pushed_requests import PushedAuthorizationRequests
from sso.oauth.revocation import Revocation
from sso.oauth.token_endpoint import TokenEndpoint
from sso.oauth.token_exchange import TokenExchange
from sso.oauth.token_request import TokenRequest
from sso.oauth.token_store import TokenStore
from sso.oauth.userinfo import require_access_token, userinfo_claims
from sso.web.body import ParsedBody
from sso.web.request import client_address, read_body, read_model, text_header
from sso.web.request_model import RequestModel, validate
from sso.web.response import reply

DISCOVERY = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
TOKEN, USERINFO, REVOKE = "/proxy/oauth/token", "/proxy/oauth/userinfo", "/proxy/oauth/token/revoke"
INTROSPECT, PAR = "/proxy/oauth/introspect", "/proxy/oauth/par"
# The endpoints that the pages of browser apps may call.
CROSS_ORIGIN_PATHS = frozenset({*DISCOVERY, *KEY_PATHS, TOKEN, USERINFO, REVOKE, INTROSPECT, PAR})
MAX_PUSHED_BODY = 32 * 1024
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# The document lists the algorithms of the published keys, so it is cached no longer than the key set.
PUBLIC = {"Cache-Control": "public, max-age=10", "Access-Control-Allow-Origin": "*", "Vary": "Origin"}


class ClientAuthenticationFields(RequestModel):
    client_id: str = ""
    client_secret: str = ""
    client_assertion_type: str = ""
    client_assertion: str = ""


class IntrospectionRequest(ClientAuthenticationFields):
    token: str = ""


class RevokeRequest(IntrospectionRequest):
    refresh_token: str = ""


def oauth_routes(
    token_endpoint: TokenEndpoint,
    revocation: Revocation,
    token_store: TokenStore,
    exchange: TokenExchange,
    assertions: ClientAssertions,
    introspection: Introspection,
    pushed_requests: PushedAuthorizationRequests,
) -> Blueprint:
    routes = Blueprint("oauth", __name__)

    @routes.post(TOKEN)
    async def token() -> Response:
        body = await read_model(TokenRequest, require_type=True)
        credentials = await verify_assertion(body) if body.client_assertion else _credentials(body)
        idempotency_key = request.headers.get("Idempotency-Key")
        return reply(await token_endpoint.respond(body, credentials, idempotency_key), headers=NO_STORE)

    @routes.post(REVOKE)
    async def revoke() -> Response:
        body = await read_model(RevokeRequest)
        credentials = await verify_assertion(body) if body.client_assertion else _credentials(body)
        await revocation.revoke(credentials, body.refresh_token, body.token)
        return reply({"status": "ok"}, headers=NO_STORE)

    @routes.post(INTROSPECT)
    async def introspect() -> Response:
        body = await read_model(IntrospectionRequest)
        credentials = await verify_assertion(body) if body.client_assertion else _credentials(body)
        return reply(await introspection.introspect(credentials, body.token), headers=NO_STORE)

    @routes.post(PAR)
    async def push() -> Response:
        form = await read_body(require_type=True, max_bytes=MAX_PUSHED_BODY)
        body = validate(ClientAuthenticationFields, form)
        credentials = await verify_assertion(body, PAR) if body.client_assertion else _credentials(body)
        pushed = await pushed_requests.push(credentials, text_fields(form), client_address())
        return reply(pushed, 201, headers=NO_STORE)

    @routes.route(USERINFO, methods=["GET", "POST"])
    async def userinfo() -> Response:
        return reply(userinfo_claims(await require_access_token(token_store, _bearer())), headers=NO_STORE)

    @routes.post("/proxy/oauth/exchange")
    async def to_id_token() -> Response:
        factor = text_header("Factor")
        return reply(await exchange.to_id_token(_bearer(), client_address(), factor), headers=NO_STORE)

    @routes.post("/proxy/oauth/exchangeToken")
    async def to_user_jwt() -> Response:
        return reply(await exchange.to_user_jwt(_bearer(), text_header("Factor") or ""), headers=NO_STORE)

    async def verify_assertion(
        body: TokenRequest | ClientAuthenticationFields, own_path: str = TOKEN
    ) -> ClientCredentials:
        if body.client_secret or request.headers.getlist("Authorization"):
            raise InvalidRequest("expected one client authentication method: client_assertion or another one")
        return await assertions.verify(
            body.client_assertion_type, body.client_assertion, body.client_id, client_address(), own_path
        )

    return routes


def discovery_routes(keys: KeySet, base_url: str) -> Blueprint:
    routes = Blueprint("discovery", __name__)

    @routes.get(DISCOVERY[0])
    @routes.get(DISCOVERY[1])
    async def discovery() -> Response:
        return reply(discovery_document(base_url, keys.algorithms()), headers=PUBLIC)

    return routes


def _credentials(body: TokenRequest | ClientAuthenticationFields) -> ClientCredentials:
    return client_credentials(request.headers.getlist("Authorization"), body.client_id, body.client_secret)


def text_fields(body: ParsedBody) -> dict[str, str]:
    """Returns the fields of a body. Raises InvalidRequest if one is no text."""
    fields: dict[str, str] = {}
    for name, value in body.fields.items():
        if not isinstance(value, str):
            raise InvalidRequest("expected a text in every field")
        fields[name] = value
    return fields


def _bearer() -> str:
    return bearer_token(request.headers.getlist("Authorization"))
