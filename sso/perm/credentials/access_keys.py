"""Authentication by access keys of applications: keys that are presented, and keys that signed something."""

from dataclasses import dataclass
from typing import Any

from sso.core.encryption import Keyring
from sso.core.ids import digest
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.stores.access_keys import access_key_place

# A key of a removed application, or of one in a removed project, is no key.
_ALIVE = """JOIN applications a ON a.application_id = k.application_id AND NOT a.removed
    LEFT JOIN projects p ON p.id = a.project_id WHERE p.removed IS NOT TRUE"""
_BY_DIGEST = Statement(
    f"""SELECT item.n, k.id, k.application_id, k.last_used IS NULL OR k.last_used < now() - interval '1 minute' AS stale
    FROM unnest(CAST(:digests AS bytea[])) WITH ORDINALITY AS item (digest, n)
    JOIN access_keys k ON k.digest = item.digest {_ALIVE}"""  # noqa: S608 - the parts are ours
)
_BY_ID = Statement(
    f"""SELECT item.n, k.id, k.application_id, k.hash_sealed,
        k.last_used IS NULL OR k.last_used < now() - interval '1 minute' AS stale
    FROM unnest(CAST(:ids AS text[])) WITH ORDINALITY AS item (id, n)
    JOIN access_keys k ON k.id = item.id {_ALIVE}"""  # noqa: S608
)
_TOUCH = Statement("UPDATE access_keys SET last_used = now() WHERE id = :id")


@dataclass(frozen=True)
class AccessKey:
    """A key that was presented, or that signed something."""

    id: str
    application_id: int


class AccessKeys:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        self._by_digest = Batch(database, _BY_DIGEST)
        self._by_id = Batch(database, _BY_ID)

    async def presented(self, secret: str) -> AccessKey | None:
        """The live key whose value this is."""
        row = await self._by_digest(digest(secret))
        if row is None:
            return None
        await self._touch(row)
        return AccessKey(row["id"], row["application_id"])

    async def secret_of(self, key_id: str) -> tuple[AccessKey, str] | None:
        """A live key by its id, with its value, to check what was signed with it."""
        row = await self._by_id(key_id)
        if row is None:
            return None
        await self._touch(row)
        secret = self._keyring.open(access_key_place(row["id"]), row["hash_sealed"])
        return AccessKey(row["id"], row["application_id"]), secret

    async def _touch(self, row: Any) -> None:
        if row["stale"]:
            await self._database.value(_TOUCH, id=row["id"])
