"""The signing keys in the database."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.core.encryption import column_purpose
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner

TOPIC = "keys"  # published when the keys have changed

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
_CHAIN = "side = CAST(:side AS boolean) AND (NOT side OR algorithm = CAST(:algorithm AS text))"
_COUNT_SIGNERS = Statement(
    f"SELECT count(*) FROM signing_keys WHERE retired IS NULL AND published_until IS NULL AND {_CHAIN}"
)
_ADD = Statement(
    """INSERT INTO signing_keys (kid, algorithm, side, public_pem, private_sealed, signs_from)
    VALUES (:kid, :algorithm, :side, :public_pem, :private_sealed, now() + make_interval(secs => :delay))"""
)
_SUPERSEDE = Statement(
    f"""UPDATE signing_keys SET published_until = now() + make_interval(secs => :keep)
    WHERE kid <> :kid AND published_until IS NULL AND {_CHAIN}"""
)
_COUNT_OTHER_SIGNERS = Statement(
    """SELECT count(*) FROM signing_keys k, signing_keys other
    WHERE k.kid = :kid AND other.kid <> k.kid AND other.retired IS NULL AND other.published_until IS NULL
        AND other.side = k.side AND (NOT k.side OR other.algorithm = k.algorithm)"""
)
_COUNT_BY_KID = Statement("SELECT count(*) FROM signing_keys WHERE kid = :kid")
_RETIRE = Statement("UPDATE signing_keys SET retired = now() WHERE kid = :kid AND retired IS NULL RETURNING kid")


class StoredKey(Struct, frozen=True):
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

    @property
    def chain(self) -> str:
        """Keys of the same chain replace each other: the main keys, and the side keys of an algorithm."""
        return self.algorithm if self.side else ""


def purpose(kid: str) -> str:
    return column_purpose("signing_keys.private_sealed", kid)


class KeyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def published(self) -> list[StoredKey]:
        """Returns the published keys, the newest signer last."""
        return await published_keys(self._database)

    async def all(self, tx: Runner | None = None) -> list[StoredKey]:
        return [_stored(row) for row in await (tx or self._database).rows(_ALL)]


async def published_keys(runner: Runner) -> list[StoredKey]:
    return [_stored(row) for row in await runner.rows(_PUBLISHED)]


async def lock_keys(tx: Runner) -> None:
    """Keeps other changes of keys waiting until the transaction ends."""
    await tx.value(_LOCK)


async def has_signer(tx: Runner, algorithm: str, *, side: bool) -> bool:
    """Returns whether the chain has a key that signs, now or soon."""
    return bool(await tx.value(_COUNT_SIGNERS, side=side, algorithm=algorithm))


async def has_other_signer(tx: Runner, kid: str) -> bool:
    """Returns whether the chain of a key has another key that signs, now or soon."""
    return bool(await tx.value(_COUNT_OTHER_SIGNERS, kid=kid))


async def key_exists(tx: Runner, kid: str) -> bool:
    return bool(await tx.value(_COUNT_BY_KID, kid=kid))


async def add_key(
    tx: Runner, kid: str, algorithm: str, public_pem: str, private_sealed: str, *, side: bool, delay_s: float
) -> None:
    """Publishes a key that signs after a delay."""
    await tx.value(
        _ADD,
        kid=kid,
        algorithm=algorithm,
        side=side,
        public_pem=public_pem,
        private_sealed=private_sealed,
        delay=delay_s,
    )


async def supersede_keys(tx: Runner, kid: str, algorithm: str, *, side: bool, keep_s: float) -> None:
    """Keeps the other keys of the chain of a new key published for so long."""
    await tx.value(_SUPERSEDE, kid=kid, keep=keep_s, side=side, algorithm=algorithm)


async def retire_key(tx: Runner, kid: str) -> bool:
    """Returns False if the key is retired already."""
    return await tx.value(_RETIRE, kid=kid) is not None


def _stored(row: Any) -> StoredKey:
    return StoredKey(**dict(row))


def key_states(keys: Sequence[StoredKey]) -> dict[str, str]:
    """Returns the state of each key by its kid, for people. ``keys`` are all keys, in the order of ``signs_from``.

    The states: waiting (published, and signs soon), signing, published, expired, retired.
    """
    signing = {key.chain: key.kid for key in keys if key.published and key.starts_in <= 0}
    return {key.kid: _state(key, signs=signing.get(key.chain) == key.kid) for key in keys}


def _state(key: StoredKey, *, signs: bool) -> str:
    if key.retired:
        return "retired"
    if key.starts_in > 0:
        return "waiting"
    if signs:
        return "signing"
    return "published" if key.published else "expired"
