"""Signing keys in the database. One method, one promise."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sso.core import keys as material
from sso.core.encryption import Keyring, place
from sso.db.database import Database
from sso.db.notifications import notify
from sso.db.statement import Statement
from sso.db.transaction import Transaction

TOPIC = "keys"
LEAD_S = 15  # a new key is published this long before it signs
VERIFY_EXPIRED_S = 30 * 86400  # expired JWTs are still verified for so long in some places

_SELECT = """SELECT kid, algorithm, side, public_pem, private_sealed, created, signs_from, published_until, retired,
    CAST(EXTRACT(EPOCH FROM signs_from - now()) AS float) AS starts_in,
    retired IS NULL AND (published_until IS NULL OR published_until > now()) AS published
    FROM signing_keys"""
_ALL = Statement(f"{_SELECT} ORDER BY signs_from, kid")
_PUBLISHED = Statement(
    f"""{_SELECT} WHERE retired IS NULL AND (published_until IS NULL OR published_until > now())
    ORDER BY signs_from, kid"""
)
_LOCK = Statement("SELECT pg_advisory_xact_lock(7350912)")
# A chain: the main keys, whatever they sign with, or the side keys of one algorithm.
_CHAIN = "side = CAST(:side AS boolean) AND (NOT side OR algorithm = CAST(:algorithm AS text))"
_ANY = Statement(
    f"SELECT count(*) FROM signing_keys WHERE retired IS NULL AND published_until IS NULL AND {_CHAIN}"  # noqa: S608 - ours
)
_ADD = Statement(
    """INSERT INTO signing_keys (kid, algorithm, side, public_pem, private_sealed, signs_from)
    VALUES (:kid, :algorithm, :side, :public_pem, :private_sealed, now() + make_interval(secs => :delay))"""
)
_SUPERSEDE = Statement(
    f"""UPDATE signing_keys SET published_until = now() + make_interval(secs => :keep)
    WHERE kid <> :kid AND published_until IS NULL AND {_CHAIN}"""  # noqa: S608 - ours
)
_OTHER_SIGNER = Statement(
    """SELECT count(*) FROM signing_keys k, signing_keys other
    WHERE k.kid = :kid AND other.kid <> k.kid AND other.retired IS NULL AND other.published_until IS NULL
        AND other.side = k.side AND (NOT k.side OR other.algorithm = k.algorithm)"""
)
_KNOWN = Statement("SELECT count(*) FROM signing_keys WHERE kid = :kid")
_RETIRE = Statement("UPDATE signing_keys SET retired = now() WHERE kid = :kid AND retired IS NULL RETURNING kid")


class LastKey(Exception):
    """Without this key nothing could be signed any more."""


@dataclass(frozen=True)
class StoredKey:
    kid: str
    algorithm: str
    side: bool
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

    async def ensure_signing_keys(self, algorithm: str, *, sides: Sequence[str] = ()) -> None:
        """There is a key that signs, and one beside it for each of these algorithms; many may call this at once."""

        async def work(tx: Transaction) -> None:
            await tx.value(_LOCK)
            # In a service that runs already, the other processes must know a key before it signs.
            delay = float(LEAD_S) if await tx.value(_ANY, side=False, algorithm=algorithm) else 0.0
            for wanted, side in ((algorithm, False), *((name, True) for name in sides)):
                if not await tx.value(_ANY, side=side, algorithm=wanted):
                    await self._add(tx, wanted, side=side, delay=delay)

        await self._database.transaction(work)

    async def rotate(self, algorithm: str, longest_token_s: int, *, side: bool = False) -> str:
        """A new key that signs in a moment; those before it stay published until all they signed is past use."""

        async def work(tx: Transaction) -> str:
            await tx.value(_LOCK)
            for row in await tx.rows(_PUBLISHED):
                # SealError here: sealed with another master key than the service's, the new key would be of no use.
                self._keyring.open(purpose(row["kid"]), row["private_sealed"])
            kid = await self._add(tx, algorithm, side=side, delay=float(LEAD_S))
            keep = float(LEAD_S + longest_token_s + VERIFY_EXPIRED_S)
            await tx.value(_SUPERSEDE, kid=kid, keep=keep, side=side, algorithm=algorithm)
            return kid

        return await self._database.transaction(work)

    async def retire(self, kid: str) -> bool:
        """False if there is no such key; what it signed is refused from now on."""

        async def work(tx: Transaction) -> bool:
            await tx.value(_LOCK)
            if not await tx.value(_KNOWN, kid=kid):
                return False
            if not await tx.value(_OTHER_SIGNER, kid=kid):
                raise LastKey(kid)
            done = await tx.value(_RETIRE, kid=kid) is not None
            await notify(tx, TOPIC)
            return done

        return await self._database.transaction(work)

    async def _add(self, tx: Transaction, algorithm: str, *, side: bool, delay: float) -> str:
        private = material.GENERATE[algorithm]()
        public = private.public_key()
        kid = material.key_id(public)
        await tx.value(
            _ADD,
            kid=kid,
            algorithm=algorithm,
            side=side,
            public_pem=material.public_pem(public),
            private_sealed=self._keyring.seal(purpose(kid), material.private_pem(private)),
            delay=delay,
        )
        await notify(tx, TOPIC)
        return kid


def _stored(row: Any) -> StoredKey:
    return StoredKey(**dict(row))
