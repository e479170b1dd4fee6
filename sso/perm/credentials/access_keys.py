"""Authentication by access keys of applications: a request presents the key, or a signature made with it."""

from dataclasses import dataclass

from sso.core.encryption import Keyring
from sso.core.ids import digest
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.perm.stores.access_keys import access_key_purpose

# A key of a removed application, or of an application in a removed project, is not valid.
_VALID_ONLY = """JOIN applications a ON a.application_id = k.application_id AND NOT a.removed
    LEFT JOIN projects p ON p.id = a.project_id WHERE p.removed IS NOT TRUE"""
_IS_STALE = "k.last_used IS NULL OR k.last_used < now() - interval '1 minute' AS is_stale"
_FIND_BY_DIGEST = BatchStatement(
    f"""SELECT item.n, k.id, k.application_id, {_IS_STALE}
    FROM {{items}} JOIN access_keys k ON k.digest = item.digest {_VALID_ONLY}""",  # noqa: S608 - constants only
    columns={"digest": "bytea"},
)
_FIND_BY_ID = BatchStatement(
    f"""SELECT item.n, k.id, k.application_id, k.hash_sealed, {_IS_STALE}
    FROM {{items}} JOIN access_keys k ON k.id = item.key_id {_VALID_ONLY}""",  # noqa: S608 - constants only
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
        """The valid key with this value. Returns None if there is none."""
        row = await self._find_by_digest(digest=digest(secret))
        if row is None:
            return None
        await self._record_use(row)
        return AccessKey(row["id"], row["application_id"])

    async def find_with_secret(self, key_id: str) -> tuple[AccessKey, str] | None:
        """The valid key with this id, and its value, to verify a signature. Returns None if there is none."""
        row = await self._find_by_id(key_id=key_id)
        if row is None:
            return None
        await self._record_use(row)
        secret = self._keyring.decrypt(access_key_purpose(row["id"]), row["hash_sealed"])
        return AccessKey(row["id"], row["application_id"]), secret

    async def _record_use(self, row: Row) -> None:
        """Set ``last_used``, at most once a minute for each key."""
        if row["is_stale"]:
            await self._database.value(_SET_LAST_USED, id=row["id"])
