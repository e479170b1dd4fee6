"""The HTTP endpoints of game sessions (§4.3)."""

from functools import partial
from typing import Annotated, Any, Literal, TypeVar, assert_never

from pydantic import Field, StringConstraints, WithJsonSchema
from quart import Blueprint, Response

from sso.accounts.errors import Banned
from sso.accounts.login.options import LoginOptionFields, parse_login_options
from sso.core.errors import Forbidden
from sso.core.net import Address, contains
from sso.gsid.client_proof import ProofFailure
from sso.gsid.model import SESSION_EXPIRED, Cancelled, Failed, LoginReady, PollOutcome, Retry, SessionSnapshot
from sso.gsid.poll import AlreadyDelivered
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.session_request import (
    SessionRequest,
    claimed_addresses,
    parse_session_request,
    public_key,
    single_address,
)
from sso.gsid.wiring import BASE, GameLogin
from sso.telemetry.login_funnel import LOGIN_FUNNEL
from sso.web.client_connection import ClientConnection, client_connection
from sso.web.deferred_response import DeferredResponse
from sso.web.request import (
    MAX_BODY,
    UnknownClient,
    client_address,
    current_request,
    ignored_forwarding_header,
    read_body,
    read_model,
    text_header,
)
from sso.web.request_model import Flag, RequestModel, validate
from sso.web.response import reply

Key = Annotated[str, StringConstraints(max_length=4096)]


class GetGsidRequest(LoginOptionFields):
    public_key: Key = ""
    link: Flag = Field(False, description="1: links the guest of the user JWT to the account of the login.")


class GsidRequest(RequestModel):
    # A text that is no gsid names no session.
    gsid: Annotated[str, StringConstraints(max_length=MAX_BODY), WithJsonSchema({"type": "string"})]
    public_key: Key = ""


class CloseGsidRequest(GsidRequest):
    status: Literal["Success", "Error"]


A = TypeVar("A", bound=GsidRequest)


def game_routes(game: GameLogin) -> Blueprint:
    routes = Blueprint("game_sessions", __name__)

    @routes.post(f"{BASE}/getGsid")
    async def get_gsid() -> Response:
        fields = await read_model(GetGsidRequest)
        headers = current_request().headers
        key_text = public_key(headers, fields.public_key)
        origin = await require_client_address("")
        await game.rate_limiter.count_new_session(origin)
        try:
            claimed = single_address(claimed_addresses(headers))
            options = await parse_login_options(fields, headers, origin, claimed, game.applications)
        except Forbidden as error:
            raise await game.violations.refuse("", ProofFailure("Ip header", found=error.message), origin) from None
        authorization = headers.get("Authorization", "")
        guest = await game.link_guest(authorization, text_header("Factor"), origin) if fields.link else ()
        session = await game.registration.register(options, key_text, *guest)
        data = {
            "status": "OK",
            "gsid": session.gsid,
            "ts": session.started,
            "started": session.started,
            "expires_in": session.expires_in,
            "match": session.match,
        }
        return reply(data, headers={"Location": game.location_url + session.secret})

    @routes.post(f"{BASE}/getGsidResult")
    async def get_gsid_result() -> Response:
        request, _ = await read_session_request(GsidRequest)
        if request.has_address_only:  # the statement that starts the poll authenticates it
            early_poll_key = AddressKeys.of(request.origin).early_polls
            return DeferredResponse(result, request.gsid, early_poll_key, request.origin, False, client_connection())
        authenticated = await game.authenticator.authenticate(request)
        early_poll_key = authenticated.early_poll_key
        return DeferredResponse(result, request.gsid, early_poll_key, request.origin, True, client_connection())

    async def result(
        gsid: str, early_poll_key: bytes, origin: Address, authenticated: bool, client_connection: ClientConnection
    ) -> Response:
        with client_connection.cancel_on_disconnect():
            try:
                outcome = await game.polls.wait_for_result(gsid, early_poll_key, None if authenticated else origin)
            except AlreadyDelivered:
                failure = ProofFailure("repeated attempt to obtain the data", "one delivery", "another poll")
                raise await game.violations.refuse(gsid, failure, origin) from None
            if isinstance(outcome, LoginReady):
                client_connection.on_response_end = partial(game.polls.finish, outcome.claim)
            if isinstance(outcome, Failed) and outcome.ban:
                raise Banned(outcome.ban, game.appeal_url)
        return reply(envelope(gsid, outcome))

    @routes.post(f"{BASE}/closeGsid")
    async def close_gsid() -> Response:
        request, fields = await read_session_request(CloseGsidRequest)
        session = (await game.authenticator.authenticate(request)).session
        if not await game.sessions.close(request.gsid, fields.status):
            return reply(envelope(request.gsid, Failed(SESSION_EXPIRED)))
        LOGIN_FUNNEL.add("closed", session.application_ids, session.distr)
        return reply({"status": "OK", "gsid": request.gsid})

    @routes.post(f"{BASE}/info")
    async def info() -> Response:
        request, _ = await read_session_request(GsidRequest)
        ignored = ignored_forwarding_header()
        if ignored or not contains(game.info_allow, request.origin):
            found = f"{request.origin} with {ignored}, not in SSO_TRUSTED_PROXIES" if ignored else str(request.origin)
            failure = ProofFailure("info", "an address of SSO_INFO_ALLOW", found)
            raise await game.authenticator.refuse(request, failure)
        session, snapshot, state = await game.authenticator.find(request)
        data = {
            "distr": session.distr,
            "factor": session.factor,
            "app_id": session.app_id,
            "gapp_id": session.gapp_id,
            "ip": session.address,
            "created": session.started,
            "last_seen": snapshot.last_seen,
            "state": state,
        }
        return reply({"status": "OK", "session": data})

    async def read_session_request(model: type[A]) -> tuple[SessionRequest, A]:
        """Returns the parsed request about a session, and its body as a model."""
        current, content = current_request(), await read_body()
        fields = validate(model, content)
        request = parse_session_request(
            fields.gsid,
            current.headers,
            current.args.getlist("Location") if current.query_string else (),
            await require_client_address(fields.gsid),
            body_key=fields.public_key,
            signed=content.raw,
        )
        return request, fields

    async def require_client_address(gsid: str) -> Address:
        try:
            return client_address()
        except UnknownClient:
            raise await game.violations.unknown_address(gsid) from None

    return routes


def envelope(gsid: str, outcome: PollOutcome) -> dict[str, Any]:
    match outcome:
        case LoginReady(snapshot, data):
            return {**data, **_common_fields("OK", gsid, snapshot)}
        case Retry(snapshot, delay):
            return {**_common_fields("RETRY", gsid, snapshot), "delay": delay}
        case Cancelled(snapshot):
            return _common_fields("CANCELLED", gsid, snapshot)
        case Failed(error):
            return {"status": "ERROR", "error": error}
        case _:
            assert_never(outcome)


def _common_fields(status: str, gsid: str, snapshot: SessionSnapshot) -> dict[str, Any]:
    return {
        "status": status,
        "gsid": gsid,
        "ts": snapshot.ts,
        "started": snapshot.started,
        "last_seen": snapshot.last_seen,
    }
