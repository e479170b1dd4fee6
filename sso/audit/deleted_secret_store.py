"""The secrets of deleted records, which the audit trail does not contain.

They are kept encrypted, under the entry of the deletion, as long as an undo brings them back. Then they are deleted.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from sso.core.encryption import Keyring, column_purpose
from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.db.transaction import Transaction

UNDO_DAYS = 30

_KEEP = Statement(
    """INSERT INTO deleted_secrets (entry_id, secrets_sealed, expires)
    VALUES (:entry_id, :sealed, now() + make_interval(days => :days))"""
)
# Of several concurrent undos, one gets the secrets.
_TAKE = Statement(
    """DELETE FROM deleted_secrets d USING audit a
    WHERE d.entry_id = :entry_id AND d.expires > now()
        AND a.id = d.entry_id AND a.operation = :operation AND a.target = :target
    RETURNING d.secrets_sealed"""
)


async def keep_secrets(tx: Transaction, keyring: Keyring, entry_id: int | None, secrets: Mapping[str, Any]) -> None:
    """Keeps the secrets of a record, as JSON values, whose deletion has this entry of the audit trail."""
    if entry_id is None or not secrets:
        return
    sealed = keyring.encrypt(_purpose(entry_id), orjson.dumps(dict(secrets)).decode())
    await tx.value(_KEEP, entry_id=entry_id, sealed=sealed, days=UNDO_DAYS)


async def take_secrets(tx: Transaction, keyring: Keyring, entry_id: int, operation: str, target: str) -> dict[str, Any]:
    """Returns the secrets of the record whose deletion has this entry, once. Raises FieldError."""
    sealed = await tx.value(_TAKE, entry_id=entry_id, operation=operation, target=target)
    if sealed is None:
        expected = f"must be the deletion of this record, which can be undone once and for {UNDO_DAYS} days"
        raise FieldError(("undo_of",), expected, status=409)
    secrets: dict[str, Any] = orjson.loads(keyring.decrypt(_purpose(entry_id), sealed))
    return secrets


def _purpose(entry_id: int) -> str:
    return column_purpose("deleted_secrets.secrets_sealed", entry_id)
