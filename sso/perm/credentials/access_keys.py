"""Access keys of applications: at most two each, shown once."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sso.core.encryption import Keyring, place
from sso.core.ids import digest, record_id, secret_token
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.errors import PermissionConflict

MAX_ACCESS_KEYS = 2

_LIST = Statement(
    """SELECT id, application_id, comment, created, modified, last_used FROM access_keys
    WHERE application_id = :application_id ORDER BY created, id"""
)
_COUNT = Statement("SELECT count(*) FROM access_keys WHERE application_id = :application_id")
_ADD = Statement(
    """INSERT INTO access_keys (id, application_id, digest, hash_sealed, comment)
    VALUES (:id, :application_id, :digest, :hash_sealed, :comment)
    RETURNING id, application_id, comment, created, modified, last_used"""
)
_DELETE = Statement(
    """DELETE FROM access_keys WHERE application_id = :application_id AND id = :id
    RETURNING id, application_id, comment, created, modified, last_used"""
)
_END = Statement(
    """DELETE FROM access_keys WHERE application_id = :application_id
    RETURNING id, application_id, comment, created, modified, last_used"""
)
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
_FIND = Statement("SELECT id, application_id, comment FROM access_keys WHERE digest = :digest FOR UPDATE")
_DESCRIBE = Statement("UPDATE access_keys SET comment = :comment, modified = now() WHERE id = :id")
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
        secret = self._keyring.open(place("access_keys.hash_sealed", row["id"]), row["hash_sealed"])
        return AccessKey(row["id"], row["application_id"]), secret

    async def list(self, application_id: int) -> list[dict[str, Any]]:
        return [_shown(row) for row in await self._database.rows(_LIST, application_id=application_id)]

    async def add(self, tx: Transaction, application_id: int, comment: str, secret: str = "") -> dict[str, Any]:
        """The new key of a locked application with its value, shown only once. Conflict when there are two already."""
        if await tx.value(_COUNT, application_id=application_id) >= MAX_ACCESS_KEYS:
            raise PermissionConflict(f"an application has at most {MAX_ACCESS_KEYS} access keys")
        key_id, secret = record_id(), secret or secret_token()
        sealed = self._keyring.seal(place("access_keys.hash_sealed", key_id), secret)
        row = await tx.row(
            _ADD, id=key_id, application_id=application_id, digest=digest(secret), hash_sealed=sealed, comment=comment
        )
        return {**_shown(row), "hash": secret}

    async def find(self, tx: Runner, secret: str) -> Row | None:
        """The key with this value, wherever it belongs: its id, application_id and comment."""
        return await tx.row(_FIND, digest=digest(secret))

    async def describe(self, tx: Runner, key_id: str, comment: str) -> None:
        await tx.value(_DESCRIBE, id=key_id, comment=comment)

    async def delete(self, tx: Runner, application_id: int, key_id: str) -> dict[str, Any] | None:
        row = await tx.row(_DELETE, application_id=application_id, id=key_id)
        return _shown(row) if row else None

    async def _touch(self, row: Any) -> None:
        if row["stale"]:
            await self._database.value(_TOUCH, id=row["id"])


async def end_keys(tx: Runner, application_id: int) -> list[dict[str, Any]]:
    """Delete all keys of an application."""
    return [_shown(row) for row in await tx.rows(_END, application_id=application_id)]


def _shown(row: Any) -> dict[str, Any]:
    shown = {
        "id": row["id"],
        "application_id": row["application_id"],
        "comment": row["comment"],
        "created": rfc3339(row["created"]),
        "modified": rfc3339(row["modified"]),
    }
    return shown | ({"last_used": rfc3339(row["last_used"])} if row["last_used"] else {})


def rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
