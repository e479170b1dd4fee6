"""The endpoints that clients call: token, revocation, pushed requests, userinfo, token exchange, discovery."""

from quart import Blueprint, Response, g, request

from sso.keys.keyset import KeySet
from sso.keys.routes import PATHS as KEY_PATHS
from sso.oauth.authorization.pushed_requests import PushedAuthorizationRequests
from sso.oauth.clients.assertions import ClientAssertions
from sso.oauth.clients.authentication import ClientCredentials, bearer_token, client_credentials
from sso.oauth.discovery import discovery_document
from sso.oauth.errors import InvalidBoundToken, InvalidDpopProof, InvalidRequest
from sso.oauth.grant_types.token_endpoint import HeldGrant, TokenEndpoint
from sso.oauth.grant_types.token_exchange import TokenExchangeGrant
from sso.oauth.grant_types.token_request import PresentedToken, TokenRequest
from sso.oauth.grant_types.user_jwt_exchange import UserJwtExchange
from sso.oauth.model import DEVICE_CODE, TOKEN_EXCHANGE
from sso.oauth.recording.observation import note_client
from sso.oauth.recording.recorder import RequestRecorder
from sso.oauth.registration.registration import RegistrationMode
from sso.oauth.tokens.dpop import AUTHORIZATION, DpopProof, DpopProofs
from sso.oauth.tokens.introspection import Introspection
from sso.oauth.tokens.revocation import Revocation
from sso.oauth.tokens.store import TokenStore
from sso.oauth.tokens.userinfo import require_access_token, require_bound_token, userinfo_claims
from sso.telemetry.counters import TOKENS_ISSUED
from sso.web.body import ParsedBody
from sso.web.client_connection import ClientConnection, client_connection
from sso.web.deferred_response import DeferredResponse
from sso.web.request import client_address, read_body, read_model, text_header
from sso.web.request_model import RequestModel, validate
from sso.web.response import reply

DISCOVERY = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
TOKEN, USERINFO, REVOKE = "/proxy/oauth/token", "/proxy/oauth/userinfo", "/proxy/oauth/token/revoke"
INTROSPECT, PAR = "/proxy/oauth/introspect", "/proxy/oauth/par"
# The endpoints that the pages of browser apps may call.
CROSS_ORIGIN_PATHS = frozenset({*DISCOVERY, *KEY_PATHS, TOKEN, USERINFO, REVOKE, INTROSPECT, PAR})
MAX_BODY = 64 * 1024  # two JWTs of 16 kB, and more: the sender is not known yet
MAX_PUSHED_BODY = 32 * 1024
REPEATABLE = frozenset({"resource"})  # the parameters of an authorization request that may occur several times
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# The document lists the algorithms of the published keys, so it is cached no longer than the key set.
PUBLIC = {"Cache-Control": "public, max-age=10", "Access-Control-Allow-Origin": "*", "Vary": "Origin"}


class ClientAuthenticationFields(RequestModel):
    """The fields by which a client authenticates."""

    client_id: str = ""
    client_secret: str = ""
    client_assertion_type: str = ""
    client_assertion: str = ""


class UserinfoRequest(RequestModel):
    access_token: PresentedToken = ""


class IntrospectionRequest(ClientAuthenticationFields):
    token: PresentedToken = ""


class RevokeRequest(IntrospectionRequest):
    refresh_token: str = ""


def oauth_routes(
    token_endpoint: TokenEndpoint,
    revocation: Revocation,
    token_store: TokenStore,
    exchange: UserJwtExchange,
    assertions: ClientAssertions,
    introspection: Introspection,
    pushed_requests: PushedAuthorizationRequests,
    proofs: DpopProofs,
    device_grant: HeldGrant,
    token_exchange: TokenExchangeGrant,
    recorder: RequestRecorder,
) -> Blueprint:
    routes = Blueprint("oauth", __name__)

    @routes.post(TOKEN)
    @recorder.observed("token")
    async def token() -> Response:
        body = await read_model(TokenRequest, require_type=True, max_bytes=MAX_BODY)
        credentials = await read_credentials(body, assertions, TOKEN)
        proof = proofs.read(request.headers.getlist("DPoP"), "POST", TOKEN)
        if body.grant_type == DEVICE_CODE:
            g.is_held = body.wait > 0
            return DeferredResponse(device_tokens, body, credentials, proof, client_connection())
        if body.grant_type == TOKEN_EXCHANGE:
            exchanged = await token_exchange.respond(body, credentials, proof, client_address())
            TOKENS_ISSUED.add("token_exchange")
            return reply(exchanged, headers={**NO_STORE, **proofs.response_headers(proof)})
        idempotency_key = request.headers.get("Idempotency-Key")
        if proof or body.resource:
            tokens = await token_endpoint.respond_restricted(body, credentials, idempotency_key, proof)
        else:
            tokens = await token_endpoint.respond(body, credentials, idempotency_key)
        TOKENS_ISSUED.add(body.grant_type)  # one of those that the endpoint knows, otherwise it raises
        return reply(tokens, headers={**NO_STORE, **proofs.response_headers(proof)})

    async def device_tokens(
        body: TokenRequest,
        credentials: ClientCredentials,
        proof: DpopProof | None,
        client_connection: ClientConnection,
    ) -> Response:
        with client_connection.cancel_on_disconnect():
            answer = await device_grant.respond(body, credentials, proof)
            client_connection.on_response_end = answer.finish
        TOKENS_ISSUED.add("device_code")
        return reply(answer.tokens, headers={**NO_STORE, **proofs.response_headers(proof)})

    @routes.post(REVOKE)
    @recorder.observed("revoke")
    async def revoke() -> Response:
        body = await read_model(RevokeRequest, max_bytes=MAX_BODY)
        credentials = await read_credentials(body, assertions, REVOKE)
        await revocation.revoke(credentials, body.refresh_token, body.token)
        return reply({"status": "ok"}, headers=NO_STORE)

    @routes.post(INTROSPECT)
    @recorder.observed("introspect")
    async def introspect() -> Response:
        body = await read_model(IntrospectionRequest, max_bytes=MAX_BODY)
        credentials = await read_credentials(body, assertions, INTROSPECT)
        return reply(await introspection.introspect(credentials, body.token), headers=NO_STORE)

    @routes.post(PAR)
    @recorder.observed("par")
    async def push() -> Response:
        form = await read_body(require_type=True, max_bytes=MAX_PUSHED_BODY, repeatable=REPEATABLE)
        proof = proofs.read(request.headers.getlist("DPoP"), "POST", PAR)
        body = validate(ClientAuthenticationFields, form)
        async with pushed_requests.count_failures(client_address()):
            credentials = await read_credentials(body, assertions, PAR)
        pushed = await pushed_requests.push(credentials, text_fields(form), client_address(), proof)
        return reply(pushed, 201, headers={**NO_STORE, **proofs.response_headers(proof)})

    @routes.route(USERINFO, methods=["GET", "POST"])
    @recorder.observed("userinfo")
    async def userinfo() -> Response:
        access_token = _bearer() if request.headers.getlist("Authorization") else await token_in_form()
        if access_token or not (access_token := _dpop_token()):
            access, proof = await require_access_token(token_store, access_token, accepts_dpop=True), None
        else:
            proof = userinfo_proof(access_token)
            access = await require_bound_token(token_store, proofs, access_token, proof)
        note_client(access.client_id, "token")
        return reply(userinfo_claims(access), headers={**NO_STORE, **proofs.response_headers(proof)})

    @routes.post("/proxy/oauth/exchange")
    async def to_id_token() -> Response:
        factor = text_header("Factor")
        exchanged = await exchange.to_id_token(_bearer(), client_address(), factor)
        TOKENS_ISSUED.add("exchange")
        return reply(exchanged, headers=NO_STORE)

    @routes.post("/proxy/oauth/exchangeToken")
    async def to_user_jwt() -> Response:
        exchanged = await exchange.to_user_jwt(_bearer(), text_header("Factor") or "")
        TOKENS_ISSUED.add("exchange")
        return reply(exchanged, headers=NO_STORE)

    async def token_in_form() -> str:
        """Returns the access token in the body of a form (RFC 6750 section 2.2); "" without one."""
        if request.method != "POST" or request.mimetype != "application/x-www-form-urlencoded":
            return ""
        return (await read_model(UserinfoRequest, max_bytes=MAX_BODY)).access_token

    def userinfo_proof(access_token: str) -> DpopProof | None:
        try:
            return proofs.read(request.headers.getlist("DPoP"), request.method, USERINFO, access_token)
        except InvalidDpopProof as error:
            raise InvalidBoundToken(error) from None

    return routes


def discovery_routes(keys: KeySet, base_url: str, registration: RegistrationMode) -> Blueprint:
    routes = Blueprint("discovery", __name__)

    @routes.get(DISCOVERY[0])
    @routes.get(DISCOVERY[1])
    async def discovery() -> Response:
        return reply(discovery_document(base_url, keys.algorithms(), registration), headers=PUBLIC)

    return routes


async def read_credentials(
    body: TokenRequest | ClientAuthenticationFields, assertions: ClientAssertions, own_path: str
) -> ClientCredentials:
    """Returns the client credentials of the current request, which has the path ``own_path``."""
    authorization = request.headers.getlist("Authorization")
    if not body.client_assertion:
        return client_credentials(authorization, body.client_id, body.client_secret)
    if body.client_secret or authorization:
        raise InvalidRequest("expected one client authentication method: client_assertion or another one")
    return await assertions.verify(
        body.client_assertion_type, body.client_assertion, body.client_id, client_address(), own_path
    )


def text_fields(body: ParsedBody) -> dict[str, str | list[str]]:
    """Returns the fields of a body: texts, and perhaps several resources. Raises InvalidRequest for other values."""
    fields: dict[str, str | list[str]] = {}
    for name, value in body.fields.items():
        values = value if isinstance(value, list) and name in REPEATABLE else [value]
        texts = [text for text in values if isinstance(text, str)]
        if len(texts) < len(values):
            raise InvalidRequest("expected a text in every field")
        fields[name] = texts if isinstance(value, list) else texts[0]
    return fields


def _dpop_token() -> str:
    """Returns the token of a ``DPoP`` header, or "" if there is no such header."""
    headers = request.headers.getlist("Authorization")
    match = AUTHORIZATION.fullmatch(headers[0].strip()) if len(headers) == 1 else None
    return match[1] if match else ""


def _bearer() -> str:
    return bearer_token(request.headers.getlist("Authorization"))
