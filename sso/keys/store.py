"""Signing keys in the database. One method, one promise."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sso.core import keys as material
from sso.core.sealed import Keyring, place
from sso.db.bridge import Database, Transaction
from sso.db.statement import Statement
from sso.db.wakeups import notify

TOPIC = "keys"
LEAD_S = 15  # a new key is published this long before it signs
VERIFY_EXPIRED_S = 30 * 86400  # expired JWTs are still verified for so long in some places

_SELECT = """SELECT kid, algorithm, public_pem, private_sealed, created, signs_from, published_until, retired,
    CAST(EXTRACT(EPOCH FROM signs_from - now()) AS float) AS starts_in,
    retired IS NULL AND (published_until IS NULL OR published_until > now()) AS published
    FROM signing_keys"""
_ALL = Statement(f"{_SELECT} ORDER BY signs_from, kid")
_PUBLISHED = Statement(
    f"""{_SELECT} WHERE retired IS NULL AND (published_until IS NULL OR published_until > now())
    ORDER BY signs_from, kid"""
)
_LOCK = Statement("SELECT pg_advisory_xact_lock(7350912)")
_ANY = Statement("SELECT count(*) FROM signing_keys WHERE retired IS NULL AND published_until IS NULL")
_ADD = Statement(
    """INSERT INTO signing_keys (kid, algorithm, public_pem, private_sealed, signs_from)
    VALUES (:kid, :algorithm, :public_pem, :private_sealed, now() + make_interval(secs => :delay))"""
)
_SUPERSEDE = Statement(
    """UPDATE signing_keys SET published_until = now() + make_interval(secs => :keep)
    WHERE kid <> :kid AND published_until IS NULL"""
)
_OTHER_SIGNER = Statement(
    "SELECT count(*) FROM signing_keys WHERE kid <> :kid AND retired IS NULL AND published_until IS NULL"
)
_RETIRE = Statement("UPDATE signing_keys SET retired = now() WHERE kid = :kid AND retired IS NULL RETURNING kid")


class LastKey(Exception):
    """Without this key nothing could be signed any more."""


@dataclass(frozen=True)
class StoredKey:
    kid: str
    algorithm: str
    public_pem: str
    private_sealed: str
    created: datetime
    signs_from: datetime
    published_until: datetime | None
    retired: datetime | None
    starts_in: float
    published: bool


def purpose(kid: str) -> str:
    return place("signing_keys.private_sealed", kid)


class KeyStore:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def published(self) -> list[StoredKey]:
        """All keys of the published set, the newest signer last."""
        return [_stored(row) for row in await self._database.rows(_PUBLISHED)]

    async def all(self) -> list[StoredKey]:
        return [_stored(row) for row in await self._database.rows(_ALL)]

    async def ensure_first(self, algorithm: str) -> None:
        """There is a key that signs; many may call this at once."""

        async def work(tx: Transaction) -> None:
            await tx.value(_LOCK)
            if not await tx.value(_ANY):
                await self._add(tx, algorithm, delay=0.0)

        await self._database.transaction(work)

    async def rotate(self, algorithm: str, longest_token_s: int) -> str:
        """A new key that signs in a moment; the others stay published until all they signed is past use."""

        async def work(tx: Transaction) -> str:
            await tx.value(_LOCK)
            for row in await tx.rows(_PUBLISHED):
                # SealError here: sealed with another master key than the service's, the new key would be of no use.
                self._keyring.open(purpose(row["kid"]), row["private_sealed"])
            kid = await self._add(tx, algorithm, delay=float(LEAD_S))
            await tx.value(_SUPERSEDE, kid=kid, keep=float(LEAD_S + longest_token_s + VERIFY_EXPIRED_S))
            return kid

        return await self._database.transaction(work)

    async def retire(self, kid: str) -> bool:
        """False if there is no such key; what it signed is refused from now on."""

        async def work(tx: Transaction) -> bool:
            await tx.value(_LOCK)
            if not await tx.value(_OTHER_SIGNER, kid=kid):
                raise LastKey(kid)
            done = await tx.value(_RETIRE, kid=kid) is not None
            await notify(tx, TOPIC)
            return done

        return await self._database.transaction(work)

    async def _add(self, tx: Transaction, algorithm: str, delay: float) -> str:
        private = material.GENERATE[algorithm]()
        public = private.public_key()
        kid = material.key_id(public)
        await tx.value(
            _ADD,
            kid=kid,
            algorithm=algorithm,
            public_pem=material.public_pem(public),
            private_sealed=self._keyring.seal(purpose(kid), material.private_pem(private)),
            delay=delay,
        )
        await notify(tx, TOPIC)
        return kid


def _stored(row: Any) -> StoredKey:
    return StoredKey(**dict(row))
