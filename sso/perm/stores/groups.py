"""User groups in the database (§2.5). Every change is written to the audit trail."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.engine.reserved_names import PROJECT_TAG
from sso.perm.errors import PermissionConflict
from sso.perm.stores.cascade import Cascade
from sso.perm.stores.locks import lock_project

MAX_GROUPS = 1000  # in one project
ACCESS_FIELDS = frozenset(("users", "conditions"))  # those that decide who is in the group

GROUP_SQL = """SELECT g.*, ARRAY(SELECT user_id FROM group_users u WHERE u.group_id = g.id ORDER BY position) AS users
    FROM user_groups g"""
_OF_PROJECT = Statement(f"{GROUP_SQL} WHERE g.project_id = :project_id ORDER BY g.created, g.id")
_ONE = Statement(f"{GROUP_SQL} WHERE g.id = :id")
_ALL = Statement(f"{GROUP_SQL} JOIN projects p ON p.id = g.project_id AND NOT p.removed ORDER BY g.created, g.id")
_COUNT = Statement("SELECT count(*) FROM user_groups WHERE project_id = :project_id")
_CREATE = Statement(
    """INSERT INTO user_groups (id, project_id, title, description, tags, conditions)
    VALUES (:id, :project_id, :title, :description, :tags, :conditions)"""
)
_SAVE = Statement("UPDATE user_groups SET title = :title, description = :description WHERE id = :id")
_SET_CONDITIONS = Statement("UPDATE user_groups SET conditions = :conditions WHERE id = :id")
_SET_TAGS = Statement("UPDATE user_groups SET tags = :tags WHERE id = :id")
_DELETE = Statement("DELETE FROM user_groups WHERE id = :id")
_CLEAR_USERS = Statement("DELETE FROM group_users WHERE group_id = :id")
_PUT_USERS = Statement(
    """INSERT INTO group_users (group_id, user_id, position)
    SELECT :id, item.user_id, item.n FROM unnest(CAST(:users AS text[])) WITH ORDINALITY AS item (user_id, n)"""
)
_IS_LISTED = Statement("SELECT :id = ANY (allow || disallow) FROM projects WHERE id = :project_id")


async def read_group(runner: Runner, group_id: str) -> Row | None:
    return await runner.row(_ONE, id=group_id)


async def read_groups(runner: Runner, project_id: str) -> list[Row]:
    return await runner.rows(_OF_PROJECT, project_id=project_id)


async def read_all_groups(runner: Runner) -> list[Row]:
    """Returns the groups of the projects that are not removed, in the order of their creation."""
    return await runner.rows(_ALL)


async def lock_group(tx: Transaction, group_id: str, project_id: str) -> Row:
    """Locks the group's project and returns the group as it is now."""
    project = await lock_project(tx, project_id)
    if project["removed"]:
        raise Forbidden("removed")
    row = await read_group(tx, group_id)
    if row is None:
        raise NotFound("group not found")
    return row


@contextmanager
def group_id_conflicts() -> Iterator[None]:
    """Turns the violation of a unique id inside this block into FieldError."""
    try:
        yield
    except UniqueViolation:
        raise FieldError(("group_id",), "is used by another group", status=409) from None


async def create_group(
    tx: Transaction, actor: AuditActor, project_id: str, group_id: str, fields: dict[str, Any]
) -> Row:
    await lock_project(tx, project_id)
    if await tx.value(_COUNT, project_id=project_id) >= MAX_GROUPS:
        raise PermissionConflict(f"a project has at most {MAX_GROUPS} groups")
    await tx.value(
        _CREATE,
        id=group_id,
        project_id=project_id,
        title=fields["title"],
        description=fields.get("description", ""),
        tags=fields.get("tags", []),
        conditions=fields.get("conditions", []),
    )
    if fields.get("users"):
        await tx.value(_PUT_USERS, id=group_id, users=fields["users"])
    return await _audit_change(tx, actor, "group.create", None, group_id)


async def change_group(tx: Transaction, actor: AuditActor, old: Row, changes: dict[str, Any]) -> Row:
    """Saves the fields in ``changes`` of a locked group. Names, tags and access have an audit entry each."""
    row = old
    if changes.keys() & {"title", "description"}:
        names = {name: changes.get(name, old[name]) for name in ("title", "description")}
        await tx.value(_SAVE, id=old["id"], **names)
        row = await _audit_change(tx, actor, "group.save", row)
    if "tags" in changes:
        if PROJECT_TAG not in changes["tags"]:
            await _refuse_if_listed(tx, row)
        await tx.value(_SET_TAGS, id=old["id"], tags=changes["tags"])
        row = await _audit_change(tx, actor, "group.tags", row)
    if changes.keys() & ACCESS_FIELDS:
        row = await _set_access(tx, actor, row, changes)
    return row


async def _set_access(tx: Transaction, actor: AuditActor, old: Row, changes: dict[str, Any]) -> Row:
    if "users" in changes:
        await tx.value(_CLEAR_USERS, id=old["id"])
        await tx.value(_PUT_USERS, id=old["id"], users=changes["users"])
    if "conditions" in changes:
        await tx.value(_SET_CONDITIONS, id=old["id"], conditions=changes["conditions"])
    return await _audit_change(tx, actor, "group.access", old)


async def delete_group(tx: Transaction, actor: AuditActor, old: Row) -> None:
    """Deletes a locked group and everything that its project gives to it or at it."""
    await _refuse_if_listed(tx, old)
    cascade = Cascade(tx, actor, f"group.delete {old['id']}")
    await cascade.remove_group_from_project(old["id"], old["project_id"])
    await tx.value(_DELETE, id=old["id"])
    await trail.write(tx, actor, "group.delete", old["id"], group_json(old), None, project_id=old["project_id"])


async def _refuse_if_listed(tx: Transaction, group: Row) -> None:
    """Dropping the last group of an allow list would open the project to all users, so the list must change first."""
    if await tx.value(_IS_LISTED, id=group["id"], project_id=group["project_id"]):
        raise PermissionConflict(
            "the group is in the allow or disallow list of its project: remove it from the list first"
        )


async def _audit_change(tx: Transaction, actor: AuditActor, operation: str, old: Row | None, new_id: str = "") -> Row:
    """Writes the change to the audit trail and returns the group as it is now."""
    row = await read_group(tx, old["id"] if old else new_id)
    assert row is not None
    before = group_json(old) if old else None
    await trail.write(tx, actor, operation, row["id"], before, group_json(row), project_id=row["project_id"])
    return row


def group_json(row: Any) -> dict[str, Any]:
    return {
        "id": row["id"],
        "project_id": row["project_id"],
        "title": row["title"],
        "description": row["description"],
        "tags": list(row["tags"]),
        "conditions": row["conditions"],
        "users": list(row["users"]),
    }
