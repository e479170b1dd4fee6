"""The key set in memory: who signs now, who is published, and the bytes of the published set.

Every process reads it anew when it changes and every few seconds; a key signs only a while after it was published, so
no token ever carries a ``kid`` that some process does not know yet.
"""

from dataclasses import dataclass
from typing import Any

import orjson
import structlog
import trio

from sso.core import keys as material
from sso.core.encryption import Keyring, SealError
from sso.core.jwt import Signer
from sso.core.keys import PublicKey
from sso.db.errors import DatabaseError
from sso.db.notifications import Notifications
from sso.keys.store import TOPIC, KeyStore, StoredKey, purpose

log = structlog.get_logger()


@dataclass(frozen=True)
class _Member:
    signer: Signer
    public: PublicKey
    public_pem: str
    side: bool
    starts_at: float  # on Trio's clock
    jwk: dict[str, Any]


class KeySet:
    def __init__(self, store: KeyStore, keyring: Keyring) -> None:
        self._store = store
        self._keyring = keyring
        self._members: dict[str, _Member] = {}
        self._chains: dict[str, list[_Member]] = {}  # "" for the main keys, each in the order in which they sign
        self._unusable: set[str] = set()  # kids of which the log has been told
        self.jwks = b'{"keys":[]}'

    def signer(self, algorithm: str = "") -> Signer:
        """The newest key that has been published long enough; the next one if all of those were retired.

        With an ``algorithm``, of the side keys that sign with it; of the main ones, if there is none.
        """
        now = trio.current_time()
        chain = self._chains.get(algorithm) or self._chains[""]
        return next((member for member in reversed(chain) if member.starts_at <= now), chain[0]).signer

    def find(self, kid: str) -> PublicKey | None:
        member = self._members.get(kid)
        return member.public if member else None

    def find_signer(self, kid: str) -> Signer | None:
        """For tokens of our own that come back."""
        member = self._members.get(kid)
        return member.signer if member else None

    def find_pem(self, kid: str) -> str | None:
        member = self._members.get(kid)
        return member.public_pem if member else None

    def algorithms(self) -> list[str]:
        """Of all that is published: what tokens are or may still be signed with."""
        return sorted({member.signer.algorithm for member in self._members.values()})

    async def load(self) -> None:
        """Read the published keys. A key that cannot be used is logged and left out; SealError if no key can sign."""
        known = self._members
        members: dict[str, _Member] = {}
        reason = "there is no signing key"
        for key in await self._store.published():
            try:
                members[key.kid] = self._member(key, known.get(key.kid))
            except Exception as error:  # whatever a damaged row leads to: the other keys still sign
                reason = str(error)
                if key.kid not in self._unusable:
                    log.error("keys.not_opened", kid=key.kid, reason=reason)
                    self._unusable.add(key.kid)
        chains: dict[str, list[_Member]] = {}
        for member in sorted(members.values(), key=lambda member: member.starts_at):
            chains.setdefault(member.signer.algorithm if member.side else "", []).append(member)
        if "" not in chains:
            raise SealError(reason)
        self._members, self._chains = members, chains
        self.jwks = orjson.dumps({"keys": [member.jwk for member in members.values()]})

    def _member(self, key: StoredKey, known: _Member | None) -> _Member:
        if known is not None:
            return known
        private = material.load_private(self._keyring.open(purpose(key.kid), key.private_sealed))
        public = private.public_key()
        if material.algorithm_of(public) != key.algorithm:
            raise material.UnusableKey("the key is not of its algorithm")
        signer = Signer(key.kid, private, key.algorithm)
        starts_at = trio.current_time() + key.starts_in
        jwk = material.public_jwk(public, key.kid)
        return _Member(signer, public, key.public_pem, key.side, starts_at, jwk)

    async def run(
        self, wakeups: Notifications, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep the set fresh for ever. A failed look keeps the set as it is: the next one is never far."""
        with wakeups.watch(TOPIC) as signals:
            await self.load()
            task_status.started()
            while True:
                await signals.receive()
                try:
                    await self.load()
                except DatabaseError as error:
                    log.warning("keys.not_read", reason=str(error))
                except SealError as error:  # no key of the database can sign: those in memory still do
                    log.error("keys.not_opened", reason=str(error))
