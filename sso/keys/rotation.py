"""Creation, rotation and retirement of signing keys. Each method is one transaction.

A new key is published first and signs ``LEAD_S`` seconds later, when all processes and clients know it. The key that it
replaces stays published until no token that it signed is accepted any more.

Keys that replace each other form a chain. The main keys are one chain. Side keys sign the refresh tokens, and the ID
tokens of clients that chose another algorithm; each algorithm has a chain of its own.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import trio

from sso.bus.bus import Bus
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.config import Settings
from sso.core import keys as key_material
from sso.core.algorithms import REFRESH_ALGORITHM
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.keys import store
from sso.keys.store import TOPIC, purpose

LEAD_S = 15  # from the publication of a new key until it signs
VERIFY_EXPIRED_S = 30 * 86400  # some operations accept JWTs that have expired this long ago

# Called with the id of a key that is added or retired, in the transaction of that change.
KeyRecorder: TypeAlias = Callable[[Transaction, str], Awaitable[None]]


async def _record_nothing(_tx: Transaction, _kid: str) -> None:
    pass


class LastKey(Exception):
    """The key is the only signer of its chain and cannot be retired."""


class KeyRotation:
    def __init__(self, database: Database, bus: Bus, keyring: Keyring) -> None:
        self._database = database
        self._bus = bus
        self._keyring = keyring

    async def ensure_signing_keys(self, algorithm: str, *, sides: Sequence[str] = ()) -> None:
        """Creates the main key, and a side key for each algorithm of ``sides``, if missing. May run concurrently."""

        async def work(tx: Transaction) -> bool:
            added = False
            await store.lock_keys(tx)
            # If the service is already running, its processes must load a new key before it signs.
            delay = float(LEAD_S) if await store.has_signer(tx, algorithm, side=False) else 0.0
            for name, side in ((algorithm, False), *((name, True) for name in sides)):
                if not await store.has_signer(tx, name, side=side):
                    await self._add(tx, name, key_material.GENERATE[name](), side=side, delay=delay)
                    added = True
            return added

        if await self._database.transaction(work):
            self._bus.publish(TOPIC)

    async def rotate(
        self, algorithm: str, longest_token_s: int, *, side: bool = False, record: KeyRecorder = _record_nothing
    ) -> str:
        """Adds a key that signs after LEAD_S seconds and returns its id.

        The keys before it stay published until the tokens that they signed are no longer accepted.
        """
        private = await trio.to_thread.run_sync(key_material.GENERATE[algorithm])

        async def work(tx: Transaction) -> str:
            await store.lock_keys(tx)
            for key in await store.published_keys(tx):
                # Raises EncryptionError if this process has another master key than the service.
                self._keyring.decrypt(purpose(key.kid), key.private_sealed)
            kid = await self._add(tx, algorithm, private, side=side, delay=float(LEAD_S))
            keep = float(LEAD_S + longest_token_s + VERIFY_EXPIRED_S)
            await store.supersede_keys(tx, kid, algorithm, side=side, keep_s=keep)
            data = {"kid": kid, "algorithm": algorithm}
            await record_changes(tx, [Change(ChangeType.KEY_ROTATED, data=data)])
            await record(tx, kid)
            return kid

        kid = await self._database.transaction(work)
        self._bus.publish(TOPIC)
        return kid

    async def retire(
        self, kid: str, record: KeyRecorder = _record_nothing, precondition: KeyRecorder = _record_nothing
    ) -> bool:
        """Retires a key at once: tokens that it signed are rejected. Returns False if there is no such key in use.

        ``precondition`` is called before the change, while no other key can be changed. It may raise an error.
        """

        async def work(tx: Transaction) -> bool:
            await store.lock_keys(tx)
            if not await store.key_exists(tx, kid):
                return False
            await precondition(tx, kid)
            if not await store.has_other_signer(tx, kid):
                raise LastKey(kid)
            if not await store.retire_key(tx, kid):
                return False
            await record_changes(tx, [Change(ChangeType.KEY_RETIRED, data={"kid": kid})])
            await record(tx, kid)
            return True

        is_retired = await self._database.transaction(work)
        if is_retired:
            self._bus.publish(TOPIC)
        return is_retired

    async def _add(self, tx: Transaction, algorithm: str, private: Any, *, side: bool, delay: float) -> str:
        public = private.public_key()
        kid = key_material.key_id(public)
        sealed = self._keyring.encrypt(purpose(kid), key_material.private_pem(private))
        await store.add_key(tx, kid, algorithm, key_material.public_pem(public), sealed, side=side, delay_s=delay)
        return kid


def longest_token_s(settings: Settings, algorithm: str, *, side: bool) -> int:
    """Returns how long those tokens of a chain of keys are accepted that live longest."""
    longest = max(settings.id_ttl_s, settings.access_ttl_s, settings.refresh_ttl_s, settings.jwt_ttl_s)
    if side and algorithm == REFRESH_ALGORITHM:
        # A refresh token that is never replaced (profile fapi2) is accepted until its grant ends.
        longest = max(longest, settings.grant_max_s)
    return longest
