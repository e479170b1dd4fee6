"""Identities without a user. They wait, bound to the browser, until it signs in to an account or creates one."""

from dataclasses import asdict, dataclass

import orjson

from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import digest
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.upstream.model import UpstreamIdentity

PENDING_S = 1800

_PUT = Statement(
    """INSERT INTO pending_identities (id, provider_id, identity_sealed, next, expires)
    VALUES (:id, :provider_id, :identity_sealed, :next, now() + make_interval(secs => :life))
    ON CONFLICT (id) DO UPDATE SET provider_id = excluded.provider_id, identity_sealed = excluded.identity_sealed,
        next = excluded.next, expires = excluded.expires"""
)
_GET = Statement("SELECT * FROM pending_identities WHERE id = :id AND expires > now()")
_USE = Statement("DELETE FROM pending_identities WHERE id = :id AND expires > now() RETURNING *")


@dataclass(frozen=True)
class PendingIdentity:
    provider_id: str
    identity: UpstreamIdentity
    next_path: str


class PendingIdentities:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def put(self, browser_secret: str, pending: PendingIdentity) -> None:
        """Replaces an earlier identity of the same browser."""
        name = _name(browser_secret)
        await self._database.value(
            _PUT,
            id=name,
            provider_id=pending.provider_id,
            identity_sealed=self._keyring.encrypt(_purpose(name), orjson.dumps(asdict(pending.identity)).decode()),
            next=pending.next_path,
            life=float(PENDING_S),
        )

    async def get(self, browser_secret: str) -> PendingIdentity | None:
        """Returns the identity of this browser without using it, or None if there is none."""
        row = await self._database.row(_GET, id=_name(browser_secret)) if browser_secret else None
        return self._pending(row)

    async def use(self, browser_secret: str, tx: Runner | None = None) -> PendingIdentity | None:
        """Uses the identity up. Of several concurrent uses, one gets it."""
        runner = tx or self._database
        return self._pending(await runner.row(_USE, id=_name(browser_secret))) if browser_secret else None

    def _pending(self, row: Row | None) -> PendingIdentity | None:
        if row is None:
            return None
        fields = orjson.loads(self._keyring.decrypt(_purpose(row["id"]), row["identity_sealed"]))
        return PendingIdentity(row["provider_id"], UpstreamIdentity(**fields), row["next"])


def _name(browser_secret: str) -> str:
    return digest(f"pending identity:{browser_secret}").hex()


def _purpose(name: str) -> str:
    return column_purpose("pending_identities.identity_sealed", name)
