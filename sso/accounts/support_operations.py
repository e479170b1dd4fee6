"""What administrators do for a user who asks for help: they end sessions and games, and unblock or reset factors.

The audit entry is written before the change, so that there is an entry for every change.
"""

from typing import Any

from msgspec import Struct

from sso.accounts.model import User
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.accounts.second_factor.store import SecondFactorAttempts, clear_attempts
from sso.accounts.session_store import SessionStore
from sso.accounts.signed_in_game_store import SignedInGames
from sso.accounts.user_store import UserStore
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import NotFound
from sso.db.database import Database


class SupportOperations(Struct, frozen=True):
    database: Database
    users: UserStore
    sessions: SessionStore
    games: SignedInGames
    factor_changes: SecondFactorChanges

    async def end_sessions(self, actor: AuditActor, user: User) -> None:
        """Ends everything that was issued to the user: browser sessions, games, tokens."""
        before = {
            "signed_in": True,
            "sessions": [entry.id for entry in await self.sessions.list(user.user_id)],
            "games": [game.title for game in await self.games.list(user.user_id)],
        }
        after = {"signed_in": False, "sessions": [], "games": []}
        await self._audit(actor, "user.end_sessions", user, before, after)
        await self.users.revoke_all(user.user_id)

    async def end_session(self, actor: AuditActor, user: User, session_id: str) -> None:
        sessions = {entry.id: entry for entry in await self.sessions.list(user.user_id)}
        if session_id not in sessions:
            raise NotFound("session not found")
        session = sessions[session_id]
        before = {"session": session_id, "address": session.address, "device": session.device, "signed_in": True}
        await self._audit(actor, "user.end_session", user, before, {**before, "signed_in": False})
        await self.sessions.end(user.user_id, session_id)

    async def end_game(self, actor: AuditActor, user: User, sign_in_id: str) -> None:
        games = [game for game in await self.games.list(user.user_id) if sign_in_id in game.ids]
        if not games:
            raise NotFound("sign-in not found")
        before = {"sign_in": sign_in_id, "game": games[0].title, "address": games[0].address, "signed_in": True}
        await self._audit(actor, "user.end_game", user, before, {**before, "signed_in": False})
        await self.games.end(user.user_id, [sign_in_id])

    async def blocked_factors(self, user: User) -> list[str]:
        return sorted(await SecondFactorAttempts(self.database).blocked(user.user_id))

    async def unblock_factors(self, actor: AuditActor, user: User) -> None:
        """Accepts codes again after the second factors were blocked by wrong codes."""
        before = {"blocked": await self.blocked_factors(user)}
        await self._audit(actor, "user.unblock_2fa", user, before, {"blocked": []})
        await clear_attempts(self.database, user.user_id)

    async def reset_factors(self, actor: AuditActor, user: User) -> None:
        """Removes all second factors, recovery codes and blocks. Everything issued ends, and the user gets a mail."""
        before = {"second_factors": list(user.second_factors), "passkeys": user.passkey_count, "signed_in": True}
        after = {"second_factors": [], "passkeys": 0, "signed_in": False}
        await self._audit(actor, "user.reset_2fa", user, before, after)
        await self.factor_changes.reset(user)
        await clear_attempts(self.database, user.user_id)

    async def _audit(self, actor: AuditActor, operation: str, user: User, before: Any, after: Any) -> None:
        await trail.write(self.database, actor, operation, user.user_id, before, after)
