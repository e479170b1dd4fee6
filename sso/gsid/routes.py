"""The endpoints of game sessions (§4.3)."""

from functools import partial
from typing import Annotated, Any, Literal, TypeVar, assert_never

from pydantic import StringConstraints
from quart import Blueprint, Response, request

from sso.accounts.option_fields import OptionFields, checked_options
from sso.core.net import Address, contains
from sso.core.refused import Forbidden
from sso.gsid import asking
from sso.gsid.admission import Asked, only
from sso.gsid.limits import AddressKeys
from sso.gsid.model import EXPIRED, Cancelled, Failed, Outcome, Ready, Retry, Standing
from sso.gsid.parts import BASE, GameLogin
from sso.gsid.poll import AlreadyDelivered
from sso.gsid.proof import Wrong
from sso.web import http
from sso.web.fields import Request, validate
from sso.web.http import BODY_MOST, UnknownClient, address, body, read, reply
from sso.web.later import Later
from sso.web.wire import Wire, wire

Key = Annotated[str, StringConstraints(max_length=4096)]


class GetGsid(OptionFields):
    public_key: Key = ""


class About(Request):
    gsid: Annotated[str, StringConstraints(max_length=BODY_MOST)]  # none that is too long, only none that exists
    public_key: Key = ""


class CloseGsid(About):
    status: Literal["Success", "Error"]


A = TypeVar("A", bound=About)


def game_routes(game: GameLogin) -> Blueprint:
    routes = Blueprint("game_sessions", __name__)

    @routes.post(f"{BASE}/getGsid")
    async def get_gsid() -> Response:
        fields = await read(GetGsid)
        key_text = asking.public_key(request.headers, fields.public_key)
        real = await real_address("")
        await game.counts.new_session(real)
        try:
            said = only(asking.said_addresses(request.headers))
            options = await checked_options(fields, request.headers, real, said, game.applications)
        except Forbidden as error:
            raise await game.violations.refuse("", Wrong("Ip header", found=error.message), real) from None
        made = await game.register.register(options, key_text)
        answer = {"gsid": made.gsid, "ts": made.started, "started": made.started, "expires_in": made.expires_in}
        return reply(
            {"status": "OK", **answer, "match": made.match}, headers={"Location": game.location_url + made.secret}
        )

    @routes.post(f"{BASE}/getGsidResult")
    async def get_gsid_result() -> Response:
        asked, _ = await about(About)
        if asked.shows_its_address_alone:  # it is admitted by the statement that begins the poll
            return Later(result, asked.gsid, AddressKeys.of(asked.real).early, asked.real, False, wire())
        admitted = await game.admission.admit(asked)
        return Later(result, asked.gsid, admitted.strike_key, asked.real, True, wire())

    async def result(gsid: str, strike_key: bytes, real: Address, admitted: bool, wire: Wire) -> Response:
        with wire.watched():
            try:
                outcome = await game.polls.wait_for_result(gsid, strike_key, None if admitted else real)
            except AlreadyDelivered:
                wrong = Wrong("repeated attempt to obtain the data", "one delivery", "another poll")
                raise await game.violations.refuse(gsid, wrong, real) from None
            if isinstance(outcome, Ready):
                wire.undo = partial(game.polls.give_back, outcome.turn)
        return reply(envelope(gsid, outcome))

    @routes.post(f"{BASE}/closeGsid")
    async def close_gsid() -> Response:
        asked, fields = await about(CloseGsid)
        await game.admission.admit(asked)
        if not await game.sessions.close(asked.gsid, fields.status):
            return reply(envelope(asked.gsid, Failed(EXPIRED)))
        return reply({"status": "OK", "gsid": asked.gsid})

    @routes.post(f"{BASE}/info")
    async def info() -> Response:
        asked, _ = await about(About)
        ignored = http.ignored_forwarding_header()
        if ignored or not contains(game.info_allow, asked.real):
            found = f"{asked.real} with {ignored}, not in SSO_TRUSTED_PROXIES" if ignored else str(asked.real)
            raise await game.admission.refuse(asked, Wrong("info", "an address of SSO_INFO_ALLOW", found))
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

    async def about(model: type[A]) -> tuple[Asked, A]:
        here, sent = http.asked(), await body()
        fields = validate(model, sent)
        asked = asking.collect(
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
        case Ready(standing, data):
            return {**data, **_common("OK", gsid, standing)}
        case Retry(standing, delay):
            return {**_common("RETRY", gsid, standing), "delay": delay}
        case Cancelled(standing):
            return _common("CANCELLED", gsid, standing)
        case Failed(error):
            return {"status": "ERROR", "error": error}
        case _:
            assert_never(outcome)


def _common(status: str, gsid: str, standing: Standing) -> dict[str, Any]:
    return {
        "status": status,
        "gsid": gsid,
        "ts": standing.ts,
        "started": standing.started,
        "last_seen": standing.last_seen,
    }
