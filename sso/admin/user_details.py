"""/api/admin/users/{user_id}/…: the sessions, games, second factors, permissions and personal data of a user."""

from typing import Annotated, Any

import orjson
from pydantic import Field

from sso.accounts.model import User
from sso.accounts.support_operations import SupportOperations
from sso.admin.answers.shape import NO_DATA_ANSWER, AnswerShape
from sso.admin.answers.users import (
    USER,
    BlockedFactorsJson,
    BrowserSessionJson,
    GameSignInJson,
    PersonalDataJson,
    SecondFactorJson,
)
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    ListQuery,
    record_response,
    slice_response,
)
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource
from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import MAX_APPLICATION_ID
from sso.core.moments import rfc3339
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, LIST_TYPES
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.personal_data.export import export_user
from sso.web.request_model import WholeNumber, at_most

EVERY_RULE = "*"  # no rule has this name


class PermissionsQuery(AdminModel):
    application_id: Annotated[WholeNumber, Field(ge=1, le=MAX_APPLICATION_ID)] = CENTRAL_APPLICATION_ID
    type: str = "list"
    explain: Annotated[str, at_most(512)] = ""  # a rule; EVERY_RULE for all rules that the user has
    at: Annotated[WholeNumber, Field(ge=0)] | None = None  # a moment in the past, in Unix seconds


class UserDetails:
    def __init__(self, users: UserResource, operations: SupportOperations, facts: FactsReader) -> None:
        self._database = users.database
        self._users = users
        self._operations = operations
        self._facts = facts

    async def sessions(self, request: AdminRequest) -> AdminResponse:
        user = await self._users.require(request.path["user_id"])
        sessions = [
            {
                "id": entry.id,
                "created": rfc3339(entry.created),
                "last_seen": rfc3339(entry.last_seen),
                "address": entry.address,
                "device": entry.device,
            }
            for entry in await self._operations.sessions.list(user.user_id)
        ]
        return slice_response(sessions, request.query, lambda session: str(session["id"]))

    async def end_sessions(self, request: AdminRequest) -> AdminResponse:
        """Ends everything that was issued to the user: browser sessions, games, tokens."""
        await self._operations.end_sessions(request.caller.actor, await self._users.require_manageable(request))
        return AdminResponse()

    async def end_session(self, request: AdminRequest) -> AdminResponse:
        user, session_id = await self._users.require_manageable(request), request.path["session_id"]
        await self._operations.end_session(request.caller.actor, user, session_id)
        return AdminResponse()

    async def games(self, request: AdminRequest) -> AdminResponse:
        user = await self._users.require(request.path["user_id"])
        games = [
            {
                "ids": list(game.ids),
                "title": game.title,
                "address": game.address,
                "first_used": rfc3339(game.first_used),
                "last_used": rfc3339(game.last_used),
            }
            for game in await self._operations.games.list(user.user_id)
        ]
        return slice_response(games, request.query, lambda game: str(game["ids"][0]))

    async def end_game(self, request: AdminRequest) -> AdminResponse:
        user, sign_in_id = await self._users.require_manageable(request), request.path["sign_in_id"]
        await self._operations.end_game(request.caller.actor, user, sign_in_id)
        return AdminResponse()

    async def factors(self, request: AdminRequest) -> AdminResponse:
        user = await self._users.require(request.path["user_id"])
        factors = [{"type": factor, "count": _count(user, factor)} for factor in user.second_factors]
        return slice_response(factors, request.query, lambda factor: str(factor["type"]))

    async def block(self, request: AdminRequest) -> AdminResponse:
        """Returns the second factors that are blocked by wrong codes."""
        user = await self._users.require(request.path["user_id"])
        return record_response({"blocked": await self._operations.blocked_factors(user)})

    async def unblock_factors(self, request: AdminRequest) -> AdminResponse:
        """Accepts codes again after the second factors were blocked by wrong codes."""
        await self._operations.unblock_factors(request.caller.actor, await self._users.require_manageable(request))
        return AdminResponse()

    async def reset_factors(self, request: AdminRequest) -> AdminResponse:
        """Removes all second factors, recovery codes and blocks. Everything issued ends, and the user gets a mail."""
        await self._operations.reset_factors(request.caller.actor, await self._users.require_manageable(request))
        return AdminResponse()

    async def export(self, request: AdminRequest) -> AdminResponse:
        """Returns everything that is stored about the user, without passwords and other secrets.

        The export is in the audit trail, and in the history that the user sees.
        """
        user = await self._users.require_manageable(request)
        document = await export_user(self._database, user.user_id, request.caller.actor)
        return AdminResponse({"data": orjson.Fragment(document)})

    async def permissions(self, request: AdminRequest) -> AdminResponse:
        """Returns the effective permissions. Conditions on the address of the client count as not met."""
        query: PermissionsQuery = request.query
        if query.type not in LIST_TYPES:
            raise FieldError(("type",), f"must be {', '.join(LIST_TYPES[:-1])} or {LIST_TYPES[-1]}")
        user = await self._users.require(request.path["user_id"])
        loaded, now = await self._load(user.user_id, query, request.caller.permissions.subject)

        def members(loaded: LoadedFacts) -> dict[str, Any]:
            members = {"data": loaded.render(query.type, now)}
            if query.explain == EVERY_RULE:
                members["explain"] = loaded.explain_all(now)
            elif query.explain:
                members["explain"] = loaded.explain(query.explain, now)
            return members

        return AdminResponse(await loaded.compute(self._facts.run_in_thread, now, members))

    async def _load(self, user_id: str, query: PermissionsQuery, caller: str) -> tuple[LoadedFacts, int]:
        """Returns the facts and the moment that they belong to."""
        if query.at is not None:
            loaded = await self._facts.past.load(
                user_id, query.application_id, None, query.at, path=("at",), caller=caller
            )
            return loaded, query.at
        present = await self._facts.load(user_id, query.application_id, None)
        if present is None:
            raise NotFound("application not found")
        return present, int(self._database.clock.now())

    def routes(self) -> tuple[AdminRoute, ...]:
        view, manage, user = AdminRight.VIEW_USERS, AdminRight.MANAGE_USERS, "/users/<user_id>"
        return (
            AdminRoute(
                "GET", f"{user}/sessions", view, self.sessions, ListQuery, answer=AnswerShape(BrowserSessionJson)
            ),
            AdminRoute(
                "DELETE",
                f"{user}/sessions",
                manage,
                self.end_sessions,
                answer=NO_DATA_ANSWER,
                operation="end_user_sessions",
                summary="End all sessions of a user",
            ),
            AdminRoute(
                "DELETE",
                f"{user}/sessions/<session_id>",
                manage,
                self.end_session,
                answer=NO_DATA_ANSWER,
                operation="end_user_session",
            ),
            AdminRoute("GET", f"{user}/games", view, self.games, ListQuery, answer=AnswerShape(GameSignInJson)),
            AdminRoute(
                "DELETE",
                f"{user}/games/<sign_in_id>",
                manage,
                self.end_game,
                answer=NO_DATA_ANSWER,
                operation="end_user_game",
                summary="Sign a user out of a game",
            ),
            AdminRoute("GET", f"{user}/factors", view, self.factors, ListQuery, answer=AnswerShape(SecondFactorJson)),
            AdminRoute(
                "DELETE",
                f"{user}/factors",
                manage,
                self.reset_factors,
                answer=NO_DATA_ANSWER,
                operation="reset_user_factors",
                summary="Remove the second factors of a user",
            ),
            AdminRoute(
                "GET",
                f"{user}/factors/block",
                view,
                self.block,
                answer=AnswerShape(BlockedFactorsJson),
                operation="get_blocked_factors",
                summary="Get the blocked factors of a user",
            ),
            AdminRoute(
                "DELETE",
                f"{user}/factors/block",
                manage,
                self.unblock_factors,
                answer=NO_DATA_ANSWER,
                operation="unblock_user_factors",
                summary="Unblock the factors of a user",
            ),
            AdminRoute(
                "POST",
                f"{user}/restore",
                manage,
                self._users.restore,
                answer=AnswerShape(USER),
                summary="Keep a closed account",
            ),
            AdminRoute(
                "POST",
                f"{user}/export",
                manage,
                self.export,
                answer=AnswerShape(PersonalDataJson),
                summary="Export the data of a user",
            ),
        )


def _count(user: User, factor: str) -> int:
    return user.passkey_count if factor == "passkey" else 1
