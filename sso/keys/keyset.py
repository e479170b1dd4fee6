"""The signing keys in memory: the current signer of each chain, the public keys, and the published JWK set.

Every process reloads the keys when they change and every few seconds. A key signs only some time after it was
published, so that no token has a ``kid`` that another process does not know yet.
"""

from operator import attrgetter
from typing import Any

import orjson
import structlog
import trio
from msgspec import Struct

from sso.bus.bus import Bus
from sso.bus.reloading import keep_loaded
from sso.core import keys as key_material
from sso.core.encryption import EncryptionError, Keyring
from sso.core.jwt import Signer
from sso.core.keys import PublicKey
from sso.db.errors import DatabaseError
from sso.keys.store import TOPIC, KeyStore, StoredKey, purpose

log = structlog.get_logger()


class _LoadedKey(Struct, frozen=True):
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
        self._keys: dict[str, _LoadedKey] = {}
        self._chains: dict[str, list[_LoadedKey]] = {}  # by algorithm, "" for the main keys; the newest signer last
        self._unusable: set[str] = set()  # kids that have been logged
        self.jwks = b'{"keys":[]}'

    def signer(self, algorithm: str = "") -> Signer:
        """Returns the newest key whose start time has passed, or the next one if all of those were retired.

        With an ``algorithm``, it is a side key of this algorithm, or a main key if there is none.
        """
        now = trio.current_time()
        chain = self._chains.get(algorithm) or self._chains[""]
        return next((key for key in reversed(chain) if key.starts_at <= now), chain[0]).signer

    def find(self, kid: str) -> PublicKey | None:
        key = self._keys.get(kid)
        return key.public if key else None

    def find_signer(self, kid: str) -> Signer | None:
        """Returns the key with this id as a signer, to verify tokens that this service has signed."""
        key = self._keys.get(kid)
        return key.signer if key else None

    def find_pem(self, kid: str) -> str | None:
        key = self._keys.get(kid)
        return key.public_pem if key else None

    def algorithms(self) -> list[str]:
        """Returns the algorithms of all published keys."""
        return sorted({key.signer.algorithm for key in self._keys.values()})

    async def load(self) -> None:
        """Reads the published keys. Logs and skips unusable keys. Raises EncryptionError if no key can sign."""
        loaded: dict[str, _LoadedKey] = {}
        reason = "there is no signing key"
        for stored in await self._store.published():
            try:
                loaded[stored.kid] = self._keys.get(stored.kid) or self._load_key(stored)
            except Exception as error:  # a damaged row must not affect the other keys
                reason = str(error)
                if stored.kid not in self._unusable:
                    log.error("keys.decryption_failed", kid=stored.kid, reason=reason)
                    self._unusable.add(stored.kid)
        chains: dict[str, list[_LoadedKey]] = {}
        for key in sorted(loaded.values(), key=attrgetter("starts_at")):
            chains.setdefault(key.signer.algorithm if key.side else "", []).append(key)
        if "" not in chains:
            raise EncryptionError(reason)
        self._keys, self._chains = loaded, chains
        self.jwks = orjson.dumps({"keys": [key.jwk for key in loaded.values()]})

    def _load_key(self, stored: StoredKey) -> _LoadedKey:
        # The seal proves that this service has written the key.
        pem = self._keyring.decrypt(purpose(stored.kid), stored.private_sealed)
        private = key_material.load_private(pem)
        public = private.public_key()
        if key_material.algorithm_of(public) != stored.algorithm:
            raise key_material.UnusableKey("the key does not match its algorithm")
        signer = Signer(stored.kid, private, stored.algorithm)
        starts_at = trio.current_time() + stored.starts_in
        jwk = key_material.public_jwk(public, stored.kid)
        return _LoadedKey(signer, public, stored.public_pem, stored.side, starts_at, jwk)

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Reloads the keys when they change and every few seconds. A failed reload keeps the keys in memory."""
        await keep_loaded(bus, TOPIC, self._reload, _log_failure, task_status=task_status)

    async def _reload(self) -> None:
        try:
            await self.load()
        except EncryptionError as error:
            if not self._chains:
                raise
            log.error("keys.decryption_failed", reason=str(error))  # those in memory can still sign


def _log_failure(error: DatabaseError) -> None:
    log.warning("keys.read_failed", reason=str(error))
