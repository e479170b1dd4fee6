"""/api/admin/game-sessions and /api/admin/violations: lists and terminates logins of games, and explains refusals.

A gsid opens the login page of its session, so responses have it only for callers who may terminate sessions anyway.
"""

from typing import Annotated

from pydantic import Field

from sso.admin.answers.service import GameSessionJson, ViolationJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.caller import AdminCaller
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    SearchQuery,
    etag,
    list_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.audit import trail
from sso.bus.bus import Bus
from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import MAX_APPLICATION_ID
from sso.core.moments import rfc3339
from sso.core.net import parse_address
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.gsid.claim_store import TerminatedSession, terminate_session
from sso.gsid.session_directory_store import STAGES, ListedSession, SessionFilter, find_session, list_sessions
from sso.gsid.violation_store import find_violation
from sso.web.request_model import WholeNumber, at_most


class GameSessionQuery(SearchQuery):
    stage: Annotated[str, at_most(32)] | None = None
    application_id: Annotated[WholeNumber, Field(ge=1, le=MAX_APPLICATION_ID)] | None = None
    address: Annotated[str, at_most(64)] | None = None
    user_id: Annotated[str, at_most(64)] | None = None


class GameSessionResource:
    def __init__(self, database: Database, bus: Bus, keep_s: int) -> None:
        self._database = database
        self._bus = bus
        self._keep_s = float(keep_s)

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Returns the newest sessions first."""
        query: GameSessionQuery = request.query
        wanted = SessionFilter(
            query.stage, query.application_id, _read_address(query.address), query.user_id, query.search or None
        )
        if query.stage is not None and query.stage not in STAGES:
            raise FieldError(("stage",), f"must be {', '.join(STAGES[:-1])} or {STAGES[-1]}")
        try:
            sessions = await list_sessions(self._database, wanted, query.after, query.limit + 1)
        except ValueError:
            raise FieldError(("after",), "must be `next` of an earlier response") from None
        shown = sessions[: query.limit]
        records = [_json(session, request.caller) for session in shown]
        return list_response(records, shown[-1].cursor if len(sessions) > query.limit else None)

    async def get(self, request: AdminRequest) -> AdminResponse:
        return _response(_require(await find_session(self._database, request.path["gsid"])), request.caller)

    async def terminate(self, request: AdminRequest) -> AdminResponse:
        """Ends the session at once, with its held poll, its socket, and the tokens of a finished login."""
        gsid = request.path["gsid"]

        async def work(tx: Transaction) -> TerminatedSession | None:
            before = _require(await find_session(tx, gsid))
            request.check_version(_version(before))
            terminated = await terminate_session(tx, gsid, self._keep_s)
            if terminated is not None:
                after = _require(await find_session(tx, gsid))
                entries = [_version(before), _version(after) | {"terminated": True}]
                await trail.write(tx, request.caller.actor, "game_session.terminate", gsid, *entries)
            return terminated

        if terminated := await self._database.transaction(work):
            terminated.wake_clients(self._bus)
        return _response(_require(await find_session(self._database, gsid)), request.caller)


class ViolationResource:
    """Why a request about a game session was refused, as `sso why` shows it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, request: AdminRequest) -> AdminResponse:
        """The id is the value of `error` in the 403 response of the client. Records are kept for a week."""
        record = await find_violation(self._database, request.path["violation_id"])
        if record is None:
            raise NotFound("violation not found")
        # A gsid opens the login page of its session.
        gsid = {"gsid": record.gsid} if AdminRight.MANAGE_GAME_SESSIONS in request.caller.rights else {}
        return record_response(
            {
                "id": record.id,
                "created": rfc3339(record.created),
                **gsid,
                "address": record.address,
                "reason": record.reason,
                "expected": record.expected,
                "found": record.found,
            }
        )


def _read_address(text: str | None) -> str | None:
    try:
        return None if text is None else str(parse_address(text))
    except ValueError:
        raise FieldError(("address",), "must be an IPv4 or IPv6 address") from None


def _require(session: ListedSession | None) -> ListedSession:
    if session is None:
        raise NotFound("game session not found")
    return session


def _version(session: ListedSession) -> JsonRecord:
    """The fields of the session that do not change by themselves. The ETag is made of them."""
    return {
        "id": session.id,
        "stage": session.stage,
        "created": rfc3339(session.created),
        "address": session.address,
        "application_id": session.app_id or None,
        "gapp_id": session.gapp_id or None,
        "distr": session.distr,
        "user_id": session.user_id,
    }


def _json(session: ListedSession, caller: AdminCaller) -> JsonRecord:
    gsid = {"gsid": session.gsid} if AdminRight.MANAGE_GAME_SESSIONS in caller.rights else {}
    return {
        **gsid,
        **_version(session),
        "age": session.age,
        "ends": rfc3339(session.ends),
        "polled": session.is_polled,
        "socket": session.has_socket,
    }


def _response(session: ListedSession, caller: AdminCaller) -> AdminResponse:
    return AdminResponse({"data": _json(session, caller)}, 200, {"ETag": etag(_version(session))})


def game_session_routes(resource: GameSessionResource, violations: ViolationResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_GAME_SESSIONS, AdminRight.MANAGE_GAME_SESSIONS
    session, answer = "/game-sessions/<gsid>", AnswerShape(GameSessionJson)
    return (
        AdminRoute("GET", "/game-sessions", view, resource.list, GameSessionQuery, answer=answer),
        AdminRoute("GET", session, view, resource.get, answer=answer),
        AdminRoute("DELETE", session, manage, resource.terminate, answer=answer, operation="terminate_game_session"),
        AdminRoute("GET", "/violations/<violation_id>", view, violations.get, answer=AnswerShape(ViolationJson)),
    )
