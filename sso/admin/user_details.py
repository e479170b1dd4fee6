"""/api/admin/users/{user_id}/…: the browser sessions, games, second factors and effective permissions of a user."""

from typing import Annotated

from pydantic import Field

from sso.accounts.model import User
from sso.accounts.second_factor.attempts import SecondFactorAttempts, clear_attempts
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.accounts.sessions import SessionStore
from sso.accounts.signed_in_games import SignedInGames
from sso.accounts.users import UserStore
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, JsonRecord, record_response, slice_response
from sso.admin.users import UserResource
from sso.audit import trail
from sso.core.errors import NotFound
from sso.core.ids import MAX_APPLICATION_ID
from sso.core.moments import rfc3339
from sso.db.database import Database
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, LIST_TYPES
from sso.perm.errors import InvalidInput
from sso.perm.stores.facts import FactsStore
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.web.request_model import WholeNumber, at_most

EVERY_RULE = "*"  # no rule has this name


class PermissionsQuery(AdminModel):
    application_id: Annotated[WholeNumber, Field(ge=1, le=MAX_APPLICATION_ID)] = CENTRAL_APPLICATION_ID
    type: str = "list"
    explain: Annotated[str, at_most(512)] = ""  # a rule; EVERY_RULE for all rules that the user has
    at: Annotated[WholeNumber, Field(ge=0)] | None = None  # a moment in the past, in Unix seconds


class UserDetails:
    def __init__(
        self,
        database: Database,
        users: UserResource,
        store: UserStore,
        sessions: SessionStore,
        games: SignedInGames,
        factors: SecondFactorChanges,
        facts: FactsStore,
    ) -> None:
        self._database = database
        self._users = users
        self._store = store
        self._sessions = sessions
        self._games = games
        self._factors = factors
        self._facts = facts
        self._attempts = SecondFactorAttempts(database)

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
            for entry in await self._sessions.list(user.user_id)
        ]
        return slice_response(sessions, request.query, lambda session: str(session["id"]))

    async def end_sessions(self, request: AdminRequest) -> AdminResponse:
        """Ends everything that was issued to the user: browser sessions, games, tokens."""
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        before = {
            "signed_in": True,
            "sessions": [entry.id for entry in await self._sessions.list(user.user_id)],
            "games": [game.title for game in await self._games.list(user.user_id)],
        }
        after = {"signed_in": False, "sessions": [], "games": []}
        await self._audit(request, "user.end_sessions", user.user_id, before, after)
        await self._store.revoke_all(user.user_id)
        return AdminResponse()

    async def end_session(self, request: AdminRequest) -> AdminResponse:
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        session_id = request.path["session_id"]
        sessions = {entry.id: entry for entry in await self._sessions.list(user.user_id)}
        if session_id not in sessions:
            raise NotFound("session not found")
        session = sessions[session_id]
        before = {"session": session_id, "address": session.address, "device": session.device, "signed_in": True}
        after = {**before, "signed_in": False}
        await self._audit(request, "user.end_session", user.user_id, before, after)
        await self._sessions.end(user.user_id, session_id)
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
            for game in await self._games.list(user.user_id)
        ]
        return slice_response(games, request.query, lambda game: str(game["ids"][0]))

    async def end_game(self, request: AdminRequest) -> AdminResponse:
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        sign_in = request.path["sign_in_id"]
        games = [game for game in await self._games.list(user.user_id) if sign_in in game.ids]
        if not games:
            raise NotFound("sign-in not found")
        before = {"sign_in": sign_in, "game": games[0].title, "address": games[0].address, "signed_in": True}
        after = {**before, "signed_in": False}
        await self._audit(request, "user.end_game", user.user_id, before, after)
        await self._games.end(user.user_id, [sign_in])
        return AdminResponse()

    async def factors(self, request: AdminRequest) -> AdminResponse:
        user = await self._users.require(request.path["user_id"])
        factors = [{"type": factor, "count": _count(user, factor)} for factor in user.second_factors]
        return slice_response(factors, request.query, lambda factor: str(factor["type"]))

    async def block(self, request: AdminRequest) -> AdminResponse:
        """Returns the second factors that are blocked by wrong codes."""
        user = await self._users.require(request.path["user_id"])
        return record_response({"blocked": sorted(await self._attempts.blocked(user.user_id))})

    async def unblock_factors(self, request: AdminRequest) -> AdminResponse:
        """Accepts codes again after the second factors were blocked by wrong codes."""
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        blocked = sorted(await self._attempts.blocked(user.user_id))
        await self._audit(request, "user.unblock_2fa", user.user_id, {"blocked": blocked}, {"blocked": []})
        await clear_attempts(self._database, user.user_id)
        return AdminResponse()

    async def reset_factors(self, request: AdminRequest) -> AdminResponse:
        """Removes all second factors, recovery codes and blocks. Everything issued ends, and the user gets a mail."""
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        factors = {"second_factors": list(user.second_factors), "passkeys": user.passkey_count, "signed_in": True}
        after = {"second_factors": [], "passkeys": 0, "signed_in": False}
        await self._audit(request, "user.reset_2fa", user.user_id, factors, after)
        await self._factors.reset(user)
        await clear_attempts(self._database, user.user_id)
        return AdminResponse()

    async def permissions(self, request: AdminRequest) -> AdminResponse:
        """Returns the effective permissions. Conditions on the address of the client count as not met."""
        query: PermissionsQuery = request.query
        if query.type not in LIST_TYPES:
            raise InvalidInput(f"type: must be {', '.join(LIST_TYPES[:-1])} or {LIST_TYPES[-1]}")
        user = await self._users.require(request.path["user_id"])
        loaded, now = await self._load(user.user_id, query, request.caller.permissions.subject)
        members = {"data": loaded.render(query.type, now)}
        if query.explain == EVERY_RULE:
            members["explain"] = loaded.explain_all(now)
        elif query.explain:
            members["explain"] = loaded.explain(query.explain, now)
        return AdminResponse(members)

    async def _load(self, user_id: str, query: PermissionsQuery, caller: str) -> tuple[LoadedFacts, int]:
        """Returns the facts and the moment that they belong to."""
        if query.at is not None:
            loaded = await self._facts.past.load(
                user_id, query.application_id, None, query.at, field="at", caller=caller
            )
            return loaded, query.at
        present = await self._facts.load(user_id, query.application_id, None)
        if present is None:
            raise NotFound("application not found")
        return present, int(self._database.clock.now())

    async def _audit(
        self, request: AdminRequest, operation: str, user_id: str, before: JsonRecord, after: JsonRecord
    ) -> None:
        """Writes the entry. Callers do this before the change, so that there is an entry for every change."""
        await trail.write(self._database, request.caller.actor, operation, user_id, before, after)


def _count(user: User, factor: str) -> int:
    return user.passkey_count if factor == "passkey" else 1
