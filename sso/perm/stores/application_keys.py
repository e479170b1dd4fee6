"""The public keys of applications in the database (§2.3): the one in service_meta, and custom ones."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core import keys
from sso.core.keys import PublicKey, UnusableKey
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

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
# Keys of a removed application, or of an application in a removed project, are not valid.
_VALID_ONLY = """JOIN applications a USING (application_id) LEFT JOIN projects p ON p.id = a.project_id
    WHERE NOT a.removed AND p.removed IS NOT TRUE"""
_NOT_OF_THIS_NODE = "(k.source <> 'file' OR k.node <> :node)"
_KEYS_OF_APPLICATION = Statement(
    f"""SELECT k.id, k.pem FROM application_keys k {_VALID_ONLY} AND k.application_id = :application_id
        AND {_NOT_OF_THIS_NODE}
    ORDER BY k.source DESC, k.created, k.id"""
)
_APPLICATION_EXISTS = Statement("SELECT 1 FROM applications WHERE application_id = :application_id")
_KEY_OF_APPLICATION = BatchStatement(
    f"""SELECT item.n, key.pem FROM {{items}} JOIN LATERAL (
        SELECT k.pem FROM application_keys k {_VALID_ONLY} AND k.application_id = item.application_id
            AND k.id = item.id AND (k.source <> 'file' OR k.node <> item.node) LIMIT 1) key ON true""",
    columns={"application_id": "int", "id": "text", "node": "text"},
)
_KEY_BY_ID = Statement(
    f"SELECT k.pem FROM application_keys k {_VALID_ONLY} AND k.id = :id AND {_NOT_OF_THIS_NODE} LIMIT 1"
)
_ACTIVE_APPLICATIONS = Statement(
    f"SELECT application_id FROM (SELECT unnest(CAST(:ids AS int[])) AS application_id) k {_VALID_ONLY}"
)
_IS_IMPORTED = Statement(
    f"""SELECT EXISTS (SELECT FROM application_keys k WHERE application_id = :application_id AND source = 'file'
        AND {_NOT_OF_THIS_NODE})"""
)


class StoredApplicationKeys:
    """Reads the keys in the database, except those of files of this node."""

    def __init__(self, database: Database, node: str) -> None:
        self._database = database
        self._node = node
        self._find_pem = Batch(database, _KEY_OF_APPLICATION)

    async def find_pem_of_application(self, application_id: int, key_id: str) -> str | None:
        row = await self._find_pem(application_id=application_id, id=key_id, node=self._node)
        return None if row is None else row["pem"]

    async def find_pem(self, key_id: str) -> str | None:
        """Returns the key with this id of any application."""
        pem: str | None = await self._database.value(_KEY_BY_ID, id=key_id, node=self._node)
        return pem

    async def pems_of_application(self, application_id: int) -> list[tuple[str, str]] | None:
        """Returns all keys of the application with their ids, or None if the application does not exist."""
        if not await self._database.value(_APPLICATION_EXISTS, application_id=application_id):
            return None
        rows = await self._database.rows(_KEYS_OF_APPLICATION, application_id=application_id, node=self._node)
        return [(row["id"], row["pem"]) for row in rows]

    async def is_imported(self, application_id: int) -> bool:
        """Returns whether another node has a file with a key of the application."""
        return await has_key_file(self._database, application_id, self._node)

    async def active_applications(self, application_ids: Collection[int]) -> frozenset[int]:
        """Returns those of the applications that are not removed and not in a removed project."""
        rows = await self._database.rows(_ACTIVE_APPLICATIONS, ids=list(application_ids)) if application_ids else ()
        return frozenset(row["application_id"] for row in rows)


async def has_key_file(runner: Runner, application_id: int, node: str = "") -> bool:
    """Returns whether a node other than ``node`` has a file with a key of the application."""
    has_file: bool = await runner.value(_IS_IMPORTED, application_id=application_id, node=node)
    return has_file


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
