"""The endpoints of game sessions (§4.3)."""

from functools import partial
from typing import Annotated, Any, Literal, TypeVar, assert_never

from pydantic import StringConstraints
from quart import Blueprint, Response, request

from sso.accounts.login_options import LoginOptionFields, parse_login_options
from sso.core.errors import Forbidden
from sso.core.net import Address, contains
from sso.gsid import session_request
from sso.gsid.client_proof import ProofFailure
from sso.gsid.model import EXPIRED, Cancelled, Failed, LoginReady, Outcome, Retry, SessionStatus
from sso.gsid.poll import AlreadyDelivered
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.session_access import SessionRequest, only
from sso.gsid.wiring import BASE, GameLogin
from sso.web import http
from sso.web.client_connection import ClientConnection, client_connection
from sso.web.deferred import DeferredResponse
from sso.web.http import MAX_BODY, UnknownClient, address, body, read, reply
from sso.web.models import RequestModel, validate

Key = Annotated[str, StringConstraints(max_length=4096)]


class GetGsidRequest(LoginOptionFields):
    public_key: Key = ""


class GsidRequest(RequestModel):
    gsid: Annotated[str, StringConstraints(max_length=MAX_BODY)]  # none that is too long, only none that exists
    public_key: Key = ""


class CloseGsidRequest(GsidRequest):
    status: Literal["Success", "Error"]


A = TypeVar("A", bound=GsidRequest)


def game_routes(game: GameLogin) -> Blueprint:
    routes = Blueprint("game_sessions", __name__)

    @routes.post(f"{BASE}/getGsid")
    async def get_gsid() -> Response:
        fields = await read(GetGsidRequest)
        key_text = session_request.public_key(request.headers, fields.public_key)
        real = await real_address("")
        await game.counts.new_session(real)
        try:
            said = only(session_request.said_addresses(request.headers))
            options = await parse_login_options(fields, request.headers, real, said, game.applications)
        except Forbidden as error:
            raise await game.violations.refuse("", ProofFailure("Ip header", found=error.message), real) from None
        made = await game.register.register(options, key_text)
        answer = {"gsid": made.gsid, "ts": made.started, "started": made.started, "expires_in": made.expires_in}
        return reply(
            {"status": "OK", **answer, "match": made.match}, headers={"Location": game.location_url + made.secret}
        )

    @routes.post(f"{BASE}/getGsidResult")
    async def get_gsid_result() -> Response:
        asked, _ = await about(GsidRequest)
        if asked.shows_its_address_alone:  # it is admitted by the statement that begins the poll
            return DeferredResponse(
                result, asked.gsid, AddressKeys.of(asked.real).early, asked.real, False, client_connection()
            )
        admitted = await game.admission.admit(asked)
        return DeferredResponse(result, asked.gsid, admitted.strike_key, asked.real, True, client_connection())

    async def result(
        gsid: str, strike_key: bytes, real: Address, admitted: bool, client_connection: ClientConnection
    ) -> Response:
        with client_connection.watched():
            try:
                outcome = await game.polls.wait_for_result(gsid, strike_key, None if admitted else real)
            except AlreadyDelivered:
                wrong = ProofFailure("repeated attempt to obtain the data", "one delivery", "another poll")
                raise await game.violations.refuse(gsid, wrong, real) from None
            if isinstance(outcome, LoginReady):
                client_connection.undo = partial(game.polls.give_back, outcome.turn)
        return reply(envelope(gsid, outcome))

    @routes.post(f"{BASE}/closeGsid")
    async def close_gsid() -> Response:
        asked, fields = await about(CloseGsidRequest)
        await game.admission.admit(asked)
        if not await game.sessions.close(asked.gsid, fields.status):
            return reply(envelope(asked.gsid, Failed(EXPIRED)))
        return reply({"status": "OK", "gsid": asked.gsid})

    @routes.post(f"{BASE}/info")
    async def info() -> Response:
        asked, _ = await about(GsidRequest)
        ignored = http.ignored_forwarding_header()
        if ignored or not contains(game.info_allow, asked.real):
            found = f"{asked.real} with {ignored}, not in SSO_TRUSTED_PROXIES" if ignored else str(asked.real)
            raise await game.admission.refuse(asked, ProofFailure("info", "an address of SSO_INFO_ALLOW", found))
        facts, standing, state = await game.admission.look(asked)
        session = {
            "distr": facts.distr,
            "factor": facts.factor,
            "app_id": facts.app_id,
            "gapp_id": facts.gapp_id,
            "ip": facts.address,
            "created": facts.started,
            "last_seen": standing.last_seen,
            "state": state,
        }
        return reply({"status": "OK", "session": session})

    async def about(model: type[A]) -> tuple[SessionRequest, A]:
        here, sent = http.asked(), await body()
        fields = validate(model, sent)
        asked = session_request.collect(
            fields.gsid,
            here.headers,
            here.args.getlist("Location") if here.query_string else (),
            await real_address(fields.gsid),
            key=fields.public_key,
            signed=sent.raw,
        )
        return asked, fields

    async def real_address(gsid: str) -> Address:
        try:
            return address()
        except UnknownClient:
            raise await game.violations.nowhere(gsid) from None

    return routes


def envelope(gsid: str, outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case LoginReady(standing, data):
            return {**data, **_common("OK", gsid, standing)}
        case Retry(standing, delay):
            return {**_common("RETRY", gsid, standing), "delay": delay}
        case Cancelled(standing):
            return _common("CANCELLED", gsid, standing)
        case Failed(error):
            return {"status": "ERROR", "error": error}
        case _:
            assert_never(outcome)


def _common(status: str, gsid: str, standing: SessionStatus) -> dict[str, Any]:
    return {
        "status": status,
        "gsid": gsid,
        "ts": standing.ts,
        "started": standing.started,
        "last_seen": standing.last_seen,
    }
