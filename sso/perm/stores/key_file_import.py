"""Public keys of applications that nodes have in files: stored in the database, so that all nodes know them.

A row belongs to the node whose file it comes from. Another node does not replace it, unless that node has stopped.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction

STOPPED_S = 60.0  # after this time without a heartbeat, the files of a node may be replaced by those of another

_LOCK = Statement("SELECT pg_advisory_xact_lock(7350913)")
_DELETE_WITHOUT_FILE = Statement(
    """DELETE FROM application_keys k WHERE source = 'file' AND node = :node AND NOT EXISTS (
        SELECT FROM unnest(CAST(:application_ids AS int[]), CAST(:ids AS text[])) AS f (application_id, id)
        WHERE f.application_id = k.application_id AND f.id = k.id)
    RETURNING application_id, id"""
)
_APPLICATIONS = Statement(
    "SELECT application_id, project_id FROM applications WHERE application_id = ANY (CAST(:application_ids AS int[]))"
)
_IMPORTED = Statement(
    """SELECT application_id, id, node, EXISTS (
        SELECT FROM node_workers w WHERE w.node = k.node AND last_seen > now() - make_interval(secs => :stopped)
    ) AS node_runs
    FROM application_keys k WHERE source = 'file' AND application_id = ANY (CAST(:application_ids AS int[]))"""
)
_DELETE = Statement("DELETE FROM application_keys WHERE application_id = :application_id AND source = 'file'")
_INSERT = Statement(
    """INSERT INTO application_keys (application_id, id, source, pem, node)
    VALUES (:application_id, :id, 'file', :pem, :node)"""
)


class KeyOfFile(NamedTuple):
    application_id: int
    id: str
    pem: str


class KeyFileConflict(NamedTuple):
    """The file of another node has a different key for the application."""

    application_id: int
    id: str  # of the key that was not imported
    node: str  # the other one


class KeyFileImportResult(NamedTuple):
    conflicts: list[KeyFileConflict]
    unknown: list[int]  # applications that do not exist


async def import_key_files(tx: Transaction, node: str, files: Sequence[KeyOfFile]) -> KeyFileImportResult:
    """Stores the keys in the files of a node, and deletes those of its files that are gone. Nodes take turns."""
    await tx.value(_LOCK)
    application_ids = [file.application_id for file in files]
    gone = await tx.rows(_DELETE_WITHOUT_FILE, node=node, application_ids=application_ids, ids=[f.id for f in files])
    involved = [*application_ids, *(row["application_id"] for row in gone)]
    rows = await tx.rows(_APPLICATIONS, application_ids=involved)
    projects: dict[int, str | None] = {row["application_id"]: row["project_id"] for row in rows}
    rows = await tx.rows(_IMPORTED, application_ids=application_ids, stopped=STOPPED_S)
    imported: dict[int, Row] = {row["application_id"]: row for row in rows}
    for row in gone:
        await _audit(tx, node, row["application_id"], projects[row["application_id"]], row["id"], None)
    conflicts = []
    for file in files:
        other = imported.get(file.application_id)
        if other is not None and other["node_runs"] and other["node"] != node:
            if other["id"] != file.id:
                conflicts.append(KeyFileConflict(file.application_id, file.id, other["node"]))
        elif file.application_id in projects and (other is None or (other["id"], other["node"]) != (file.id, node)):
            await _replace(tx, node, file, other, projects[file.application_id])
    return KeyFileImportResult(conflicts, [number for number in application_ids if number not in projects])


async def _replace(tx: Transaction, node: str, file: KeyOfFile, old: Row | None, project_id: str | None) -> None:
    """Stores a key in place of the one of a node that has stopped."""
    await tx.value(_DELETE, application_id=file.application_id)
    await tx.value(_INSERT, application_id=file.application_id, id=file.id, pem=file.pem, node=node)
    await _audit(tx, node, file.application_id, project_id, old and old["id"], file.id)


async def _audit(
    tx: Transaction, node: str, application_id: int, project_id: str | None, old: str | None, new: str | None
) -> None:
    await trail.write(
        tx,
        AuditActor(operator=f"keys/{application_id}.pem on {node}"),
        "application.key.add" if new else "application.key.remove",
        f"{application_id}/{new or old}",
        {"kid": old} if old else None,
        {"kid": new} if new else None,
        project_id=project_id,
        application_id=application_id,
    )
