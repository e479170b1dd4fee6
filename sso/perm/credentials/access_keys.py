"""Authentication by access keys of applications: a request presents the key, or a signature made with it."""

from dataclasses import dataclass

from sso.core.encryption import Keyring
from sso.core.ids import digest
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.stores.access_keys import VALID_KEY_SQL, access_key_purpose

_FIND_BY_DIGEST = BatchStatement(
    f"""SELECT item.n, key.id, key.application_id, key.is_stale
    FROM {{items}} JOIN LATERAL ({VALID_KEY_SQL} AND k.digest = item.digest) key ON true""",
    columns={"digest": "bytea"},
)
_FIND_BY_ID = BatchStatement(
    f"""SELECT item.n, key.id, key.application_id, key.hash_sealed, key.is_stale
    FROM {{items}} JOIN LATERAL ({VALID_KEY_SQL} AND k.id = item.key_id) key ON true""",
    columns={"key_id": "text"},
)
_SET_LAST_USED = Statement("UPDATE access_keys SET last_used = now() WHERE id = :id")


@dataclass(frozen=True)
class AccessKey:
    """A valid access key, without its value."""

    id: str
    application_id: int


class AccessKeys:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        self._find_by_digest = Batch(database, _FIND_BY_DIGEST)
        self._find_by_id = Batch(database, _FIND_BY_ID)

    async def authenticate(self, secret: str) -> AccessKey | None:
        """Returns the valid key with this value, or None if there is none."""
        row = await self._find_by_digest(digest=digest(secret))
        if row is None:
            return None
        return await self.use(row["id"], row["application_id"], is_stale=row["is_stale"])

    async def find_with_secret(self, key_id: str) -> tuple[AccessKey, str] | None:
        """Returns the valid key with this id, and its value, to verify a signature, or None if there is none."""
        row = await self._find_by_id(key_id=key_id)
        if row is None:
            return None
        key = await self.use(row["id"], row["application_id"], is_stale=row["is_stale"])
        return key, self._keyring.decrypt(access_key_purpose(key.id), row["hash_sealed"])

    async def use(self, key_id: str, application_id: int, *, is_stale: bool) -> AccessKey:
        """The key, after its ``last_used`` has been set; that is done only if it is stale, a minute old."""
        if is_stale:
            await self._database.value(_SET_LAST_USED, id=key_id)
        return AccessKey(key_id, application_id)
