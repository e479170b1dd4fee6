"""Access keys of applications in the database. An application has at most two; a value is shown only at creation."""

from typing import Any

from msgspec import Struct

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import digest, record_id, secret_token
from sso.core.moments import rfc3339
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.errors import PermissionConflict

MAX_ACCESS_KEYS = 2

# A key of a removed application, or of an application in a removed project, is not valid.
VALID_KEY_SQL = """SELECT k.id, k.application_id, k.hash_sealed,
        k.last_used IS NULL OR k.last_used < now() - interval '1 minute' AS is_stale
    FROM access_keys k
    JOIN applications ka ON ka.application_id = k.application_id AND NOT ka.removed
    LEFT JOIN projects kp ON kp.id = ka.project_id
    WHERE kp.removed IS NOT TRUE"""

_COLUMNS = "id, application_id, comment, created, modified, last_used"
_LIST = Statement(f"SELECT {_COLUMNS} FROM access_keys WHERE application_id = :application_id ORDER BY created, id")
_ONE = Statement(f"SELECT {_COLUMNS} FROM access_keys WHERE id = :id")
_COUNT = Statement("SELECT count(*) FROM access_keys WHERE application_id = :application_id")
_ADD = Statement(
    f"""INSERT INTO access_keys (id, application_id, digest, hash_sealed, comment)
    VALUES (:id, :application_id, :digest, :hash_sealed, :comment) RETURNING {_COLUMNS}"""
)
_DELETE = Statement(f"DELETE FROM access_keys WHERE application_id = :application_id AND id = :id RETURNING {_COLUMNS}")
_DELETE_ALL = Statement(f"DELETE FROM access_keys WHERE application_id = :application_id RETURNING {_COLUMNS}")
_LOCK_BY_DIGEST = Statement("SELECT id, application_id, comment FROM access_keys WHERE digest = :digest FOR UPDATE")
_SET_COMMENT = Statement("UPDATE access_keys SET comment = :comment, modified = now() WHERE id = :id")
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


class AccessKey(Struct, frozen=True):
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


def access_key_purpose(key_id: str) -> str:
    """Returns the purpose that the encryption of a key's value is bound to."""
    return column_purpose("access_keys.hash_sealed", key_id)


async def list_access_keys(runner: Runner, application_id: int) -> list[dict[str, Any]]:
    return [access_key_json(row) for row in await runner.rows(_LIST, application_id=application_id)]


async def read_access_key(runner: Runner, key_id: str) -> dict[str, Any] | None:
    row = await runner.row(_ONE, id=key_id)
    return None if row is None else access_key_json(row)


async def lock_access_key(tx: Runner, secret: str) -> Row | None:
    """Returns the key with this value, of any application: its id, application_id and comment."""
    return await tx.row(_LOCK_BY_DIGEST, digest=digest(secret))


async def add_access_key(
    tx: Transaction,
    actor: AuditActor,
    keyring: Keyring,
    application_id: int,
    project_id: str | None,
    comment: str,
    secret: str = "",
) -> dict[str, Any]:
    """Adds a key to a locked application and returns it with its value. ``project_id`` is the application's project.

    Raises PermissionConflict if the application has two keys already.
    """
    if await tx.value(_COUNT, application_id=application_id) >= MAX_ACCESS_KEYS:
        raise PermissionConflict(f"an application has at most {MAX_ACCESS_KEYS} access keys")
    key_id, secret = record_id(), secret or secret_token()
    row = await tx.row(
        _ADD,
        id=key_id,
        application_id=application_id,
        digest=digest(secret),
        hash_sealed=keyring.encrypt(access_key_purpose(key_id), secret),
        comment=comment,
    )
    key = {**access_key_json(row), "hash": secret}
    await _audit(tx, actor, "access_key.create", key_id, None, key, project_id, application_id)
    await _record(tx, ChangeType.ACCESS_KEY_CREATED, application_id, key_id)
    return key


async def set_access_key_comment(
    tx: Transaction, actor: AuditActor, key: Row, project_id: str | None, comment: str
) -> None:
    await tx.value(_SET_COMMENT, id=key["id"], comment=comment)
    before, after = {"comment": key["comment"]}, {"comment": comment}
    await _audit(tx, actor, "access_key.save", key["id"], before, after, project_id, key["application_id"])


async def delete_access_key(
    tx: Transaction, actor: AuditActor, application_id: int, project_id: str | None, key_id: str
) -> bool:
    """Returns False if the application has no such key."""
    row = await tx.row(_DELETE, application_id=application_id, id=key_id)
    if row is None:
        return False
    await _audit(tx, actor, "access_key.delete", key_id, access_key_json(row), None, project_id, application_id)
    await _record(tx, ChangeType.ACCESS_KEY_DELETED, application_id, key_id)
    return True


async def delete_access_keys(tx: Transaction, actor: AuditActor, application_id: int, project_id: str | None) -> None:
    """Deletes all keys of an application."""
    for row in await tx.rows(_DELETE_ALL, application_id=application_id):
        key = access_key_json(row)
        await _audit(tx, actor, "access_key.delete", key["id"], key, None, project_id, application_id)
        await _record(tx, ChangeType.ACCESS_KEY_DELETED, application_id, key["id"])


def access_key_json(row: Any) -> dict[str, Any]:
    key = {
        "id": row["id"],
        "application_id": row["application_id"],
        "comment": row["comment"],
        "created": rfc3339(row["created"]),
        "modified": rfc3339(row["modified"]),
    }
    return key | ({"last_used": rfc3339(row["last_used"])} if row["last_used"] else {})


async def _record(tx: Transaction, change: ChangeType, application_id: int, key_id: str) -> None:
    await record_changes(tx, [Change(change, application_id=application_id, data={"key_id": key_id})])


async def _audit(
    tx: Transaction,
    actor: AuditActor,
    operation: str,
    key_id: str,
    before: Any,
    after: Any,
    project_id: str | None,
    application_id: int,
) -> None:
    await trail.write(tx, actor, operation, key_id, before, after, project_id=project_id, application_id=application_id)
