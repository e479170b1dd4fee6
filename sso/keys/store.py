"""The signing keys in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
PUBLISHED = Statement(
    f"""{_SELECT} WHERE retired IS NULL AND (published_until IS NULL OR published_until > now())
    ORDER BY signs_from, kid"""
)


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
        return [_stored(row) for row in await self._database.rows(PUBLISHED)]

    async def all(self, tx: Runner | None = None) -> list[StoredKey]:
        return [_stored(row) for row in await (tx or self._database).rows(_ALL)]


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
