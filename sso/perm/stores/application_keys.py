"""The public keys of applications in the database (§2.3): the one in service_meta, and custom ones."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core import keys
from sso.core.keys import PublicKey, UnusableKey
from sso.db.statement import Statement
from sso.db.transaction import Transaction

_ADD = Statement(
    """INSERT INTO application_keys (application_id, id, source, pem) VALUES (:application_id, :id, :source, :pem)
    ON CONFLICT DO NOTHING RETURNING id"""
)
_DELETE_META_KEY = Statement(
    "DELETE FROM application_keys WHERE application_id = :application_id AND source = 'meta' RETURNING id"
)
_DELETE_CUSTOM_KEY = Statement(
    """DELETE FROM application_keys WHERE application_id = :application_id AND id = :id AND source IN ('custom', 'file')
    RETURNING id"""
)
_DELETE_ALL = Statement("DELETE FROM application_keys WHERE application_id = :application_id RETURNING id")


async def add_custom_key(tx: Transaction, actor: AuditActor, application: Mapping[str, Any], pem: str) -> str:
    """Adds a key and returns its id. Raises UnusableKey if ``pem`` is not a usable key."""
    key = keys.load_public(pem)
    kid, application_id = keys.key_id(key), application["application_id"]
    if await _add(tx, application_id, key, "custom"):
        await _record(tx, ChangeType.APPLICATION_KEY_ADDED, application_id, kid)
        await _audit(tx, actor, "application.key.add", application, kid, None, {"kid": kid})
    return kid


async def delete_custom_key(tx: Transaction, actor: AuditActor, application: Mapping[str, Any], key_id: str) -> bool:
    """Deletes a custom key, or a key of a file that no node has any more. Returns False if there is no such key."""
    application_id = application["application_id"]
    if await tx.value(_DELETE_CUSTOM_KEY, application_id=application_id, id=key_id) is None:
        return False
    await _record(tx, ChangeType.APPLICATION_KEY_REMOVED, application_id, key_id)
    await _audit(tx, actor, "application.key.remove", application, key_id, {"kid": key_id}, None)
    return True


async def replace_service_meta_key(tx: Transaction, application_id: int, public_key: str) -> None:
    """Replaces the key of service_meta.public_key. A string that is no usable key is neither published nor trusted."""
    before = await tx.value(_DELETE_META_KEY, application_id=application_id)
    after = None
    with suppress(UnusableKey):
        key = keys.load_public(public_key)
        await _add(tx, application_id, key, "meta")
        after = keys.key_id(key)
    if before == after:
        return
    if before:
        await _record(tx, ChangeType.APPLICATION_KEY_REMOVED, application_id, before)
    if after:
        await _record(tx, ChangeType.APPLICATION_KEY_ADDED, application_id, after)


async def delete_application_keys(tx: Transaction, application_id: int) -> list[str]:
    """Deletes all keys of an application and returns their ids. Keys in files stay."""
    kids = sorted(row["id"] for row in await tx.rows(_DELETE_ALL, application_id=application_id))
    await _record(tx, ChangeType.APPLICATION_KEY_REMOVED, application_id, *kids)
    return kids


async def _add(tx: Transaction, application_id: int, key: PublicKey, source: str) -> bool:
    """Returns False if the application has the key from this source already."""
    pem = keys.public_pem(key)
    added = await tx.value(_ADD, application_id=application_id, id=keys.key_id(key), source=source, pem=pem)
    return added is not None


async def _record(tx: Transaction, change: ChangeType, application_id: int, *kids: str) -> None:
    await record_changes(tx, [Change(change, application_id=application_id, data={"kid": kid}) for kid in kids])


async def _audit(
    tx: Transaction,
    actor: AuditActor,
    operation: str,
    application: Mapping[str, Any],
    kid: str,
    before: dict[str, str] | None,
    after: dict[str, str] | None,
) -> None:
    application_id = application["application_id"]
    names = {"project_id": application["project_id"], "application_id": application_id}
    await trail.write(tx, actor, operation, f"{application_id}/{kid}", before, after, **names)
