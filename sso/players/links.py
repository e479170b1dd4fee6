"""The keys and store accounts with which a user signs in: the one operation for players and administrators."""

from datetime import datetime

from msgspec import Struct

from sso.accounts.errors import LastWayToSignIn
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.signed_in_game_store import SignedInGames
from sso.accounts.user_store import can_sign_in, lock_user
from sso.audit.trail import AuditActor
from sso.core.errors import Conflict
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.players.device_key_store import delete_key, key_sign_ins, list_keys
from sso.upstream.linked_identities import LinkedIdentities, audit_unlink

LAST_WAY = "it is the user's last way to sign in"


class UserLink(Struct, frozen=True):
    id: str
    kind: str  # key or store_account
    name: str  # the algorithm of a key, or the provider and the name there
    created: datetime
    last_used: datetime


class UserLinks:
    def __init__(self, database: Database, identities: LinkedIdentities, games: SignedInGames) -> None:
        self._database = database
        self._identities = identities
        self._games = games

    async def keys(self, user_id: str) -> list[UserLink]:
        rows = await list_keys(self._database, user_id)
        return [UserLink(row["id"], "key", row["algorithm"], row["created"], row["last_used"]) for row in rows]

    async def list(self, user_id: str) -> list[UserLink]:
        accounts = [
            UserLink(
                item.id, "store_account", f"{item.provider_name} {item.name}".strip(), item.created, item.last_used
            )
            for item in await self._identities.list(user_id)
        ]
        return [*await self.keys(user_id), *accounts]

    async def remove(self, user: User, link_id: str, actor: AuditActor | None = None) -> bool:
        """Removes a key or a store account. Returns False if the user has none with this id.

        Raises Conflict if the user could not sign in any more. What was issued to the device with the key ends. With an
        ``actor``, the audit trail gets an entry.
        """
        if await self._database.transaction(self._remove_key, user.user_id, link_id, actor):
            return True
        return await self._remove_store_account(user, link_id, actor)

    async def _remove_key(self, tx: Transaction, user_id: str, link_id: str, actor: AuditActor | None) -> bool:
        """Returns False if the user has no such key."""
        await lock_user(tx, user_id)
        key = await delete_key(tx, user_id, link_id)
        if key is None:
            return False
        if not await can_sign_in(tx, user_id):
            raise Conflict(LAST_WAY)
        await record_event(tx, user_id, EventKind.DEVICE_KEY_REMOVED)
        await self._games.end_in(tx, user_id, await key_sign_ins(tx, user_id, key))
        await audit_unlink(tx, actor, user_id, link_id)
        return True

    async def _remove_store_account(self, user: User, link_id: str, actor: AuditActor | None) -> bool:
        try:
            return await self._identities.unlink(user, link_id, actor)
        except LastWayToSignIn:
            raise Conflict(LAST_WAY) from None
