"""The keys and store accounts with which a user signs in: the one operation for players and administrators."""

from dataclasses import dataclass
from datetime import datetime

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.signed_in_game_store import SignedInGames
from sso.accounts.user_store import can_sign_in, lock_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import Conflict
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.players.device_key_store import delete_key, key_sign_ins, list_keys
from sso.upstream.linked_identities import LastWayToSignIn, LinkedIdentities

LAST_WAY = "it is the user's last way to sign in"


@dataclass(frozen=True)
class UserLink:
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
        key = await self._database.transaction(_remove_key, user.user_id, link_id)
        if key is not None:
            sign_ins = await self._database.transaction(key_sign_ins, user.user_id, key)
            await self._games.end(user.user_id, sign_ins)
        else:
            try:
                if not await self._identities.unlink(user, link_id):
                    return False
            except LastWayToSignIn:
                raise Conflict(LAST_WAY) from None
        if actor is not None:
            await trail.write(self._database, actor, "user.unlink", user.user_id, {"link": link_id}, {"link": None})
        return True


async def _remove_key(tx: Transaction, user_id: str, link_id: str) -> bytes | None:
    await lock_user(tx, user_id)
    key = await delete_key(tx, user_id, link_id)
    if key is None:
        return None
    if not await can_sign_in(tx, user_id):
        raise Conflict(LAST_WAY)
    await record_event(tx, user_id, EventKind.DEVICE_KEY_REMOVED)
    return key
