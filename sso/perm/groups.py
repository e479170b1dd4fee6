"""User groups: the group itself, its access settings, its tags (§2.5, §4.7)."""

import secrets
from typing import Any

from sso.core.errors import Forbidden, NotFound
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.authorization import Authorizer
from sso.perm.delegation import Delegation
from sso.perm.engine.names import PROJECT_TAG
from sso.perm.engine.operations import Operation
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.perm.input.conditions import read_group_conditions
from sso.perm.input.names import read_group_id, read_title
from sso.perm.input.project import MAX_GROUP_USERS, read_group_users
from sso.perm.input.service import read_tags
from sso.perm.projects import ProjectEndpoint
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.cascade import Cascade
from sso.perm.stores.project_state import lock_project

MAX_GROUPS = 1000  # in one project
SAVED = frozenset(("id", "project_id", "title", "description", "tags", "conditions", "users"))
ACCESS = frozenset(("id", "project_id", "title", "conditions", "users"))

_SELECT = """SELECT g.*, ARRAY(SELECT user_id FROM group_users u WHERE u.group_id = g.id ORDER BY position) AS users
    FROM user_groups g"""
_OF_PROJECT = Statement(f"{_SELECT} WHERE g.project_id = :project_id ORDER BY g.created, g.id")
_ONE = Statement(f"{_SELECT} WHERE g.id = :id")
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
_LISTED = Statement("SELECT :id = ANY (allow || disallow) FROM projects WHERE id = :project_id")


class GroupEndpoint:
    def __init__(self, database: Database, desk: Authorizer, projects: ProjectEndpoint) -> None:
        self._database = database
        self._desk = desk
        self._projects = projects

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        match call.action("get", "save", "delete"):
            case "get":
                return await self._get(call)
            case "save":
                return await self._save(call)
            case _:
                return await self._delete(call)

    async def _get(self, call: PermissionRequest) -> dict[str, Any]:
        """Only the groups that the caller manages; none is an empty list."""
        data = call.required_data()
        call.ignore_unknown(data, SAVED)
        project_id = await self._projects.resolve(data.get("project_id"), "data.project_id")
        standing = await self._desk.standing(call.caller)
        rows = await self._database.rows(_OF_PROJECT, project_id=project_id)
        groups = [
            shown(row) for row in rows if standing.may(Operation.GROUP_GET, project_id=project_id, group_id=row["id"])
        ]
        return call.answer(data={"groups": groups, "max_users_cnt": MAX_GROUP_USERS})

    async def _save(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.required_data()
        call.ignore_unknown(data, SAVED)
        given: dict[str, Any] = {}
        if "title" in data:
            given["title"] = read_title(data["title"], "title")
        if "description" in data:
            given["description"] = validators.text(data["description"], "description")
        if "group_id" in call.fields:
            return await self._update(call, given, data)
        if "title" not in given:
            raise InvalidInput("title: is required")
        project_id = await self._projects.resolve(data.get("project_id"), "data.project_id")
        standing = await self._desk.standing(call.caller)
        row = await self._projects.visible(standing, project_id, Operation.GROUP_SAVE)
        if row["removed"]:
            raise Forbidden("removed")

        async def work(tx: Transaction) -> Row:
            return await create_group(tx, call.caller.actor, project_id, secrets.token_hex(12), given)

        return call.answer(data=shown(await self._database.transaction(work)))

    async def _update(self, call: PermissionRequest, given: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        said = await self._projects.resolve(data["project_id"], "data.project_id") if "project_id" in data else None
        group = await self._permitted(call, Operation.GROUP_SAVE)
        if said is not None and said != group["project_id"]:
            raise InvalidInput("data.project_id: a group stays in its project")

        async def work(tx: Transaction) -> Row:
            return await save_group(tx, call.caller.actor, await _locked(tx, group), given)

        return call.answer(data=shown(await self._database.transaction(work)))

    async def _delete(self, call: PermissionRequest) -> dict[str, Any]:
        group = await self._permitted(call, Operation.GROUP_DELETE)

        async def work(tx: Transaction) -> None:
            delegation = await Delegation.begin(tx, call.caller, group["project_id"])
            old = await _locked(tx, group)
            await _refuse_if_listed(tx, old)
            cascade = Cascade(tx, call.caller.actor, f"group.delete {old['id']}")
            await cascade.end_group_in_project(old["id"], old["project_id"])
            await tx.value(_DELETE, id=old["id"])
            await audit.write(
                tx, call.caller.actor, "group.delete", old["id"], shown(old), None, project_id=old["project_id"]
            )
            await delegation.judge()

        await self._database.transaction(work)
        return call.answer()

    async def access(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.required_data()
        call.ignore_unknown(data, ACCESS)
        users = read_group_users(data["users"]) if "users" in data else None
        conditions = None
        if "conditions" in data:
            conditions, warnings = read_group_conditions(data["conditions"])
            call.warnings.extend(warnings)
        group = await self._permitted(call, Operation.GROUP_ACCESS)

        async def work(tx: Transaction) -> Row:
            delegation = await Delegation.begin(tx, call.caller, group["project_id"])
            row = await set_access(tx, call.caller.actor, await _locked(tx, group), users, conditions)
            await delegation.judge()
            return row

        saved = shown(await self._database.transaction(work))
        return call.answer(data={name: saved[name] for name in ("id", "project_id", "title", "conditions", "users")})

    async def tags(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.required_data()
        call.ignore_unknown(data, SAVED)
        tags = read_tags(data.get("tags"), "data.tags")
        group = await self._permitted(call, Operation.GROUP_SAVE)

        async def work(tx: Transaction) -> Row:
            old = await _locked(tx, group)
            return await set_tags(tx, call.caller.actor, old, tags)

        return call.answer(data=shown(await self._database.transaction(work)))

    async def _permitted(self, call: PermissionRequest, operation: Operation) -> Row:
        wanted = read_group_id(call.fields.get("group_id"), "group_id")
        standing = await self._desk.standing(call.caller)
        row = await self._database.row(_ONE, id=wanted)
        if row is None:
            if standing.rights.is_root:
                raise NotFound("group not found")
            raise standing.missing(operation)
        standing.require(operation, project_id=row["project_id"], group_id=wanted)
        return row


async def create_group(tx: Transaction, actor: AuditActor, project_id: str, new_id: str, given: dict[str, Any]) -> Row:
    await lock_project(tx, project_id)
    if await tx.value(_COUNT, project_id=project_id) >= MAX_GROUPS:
        raise PermissionConflict(f"a project has at most {MAX_GROUPS} groups")
    await tx.value(
        _CREATE,
        id=new_id,
        project_id=project_id,
        title=given["title"],
        description=given.get("description", ""),
        tags=given.get("tags", []),
        conditions=given.get("conditions", []),
    )
    if given.get("users"):
        await tx.value(_PUT_USERS, id=new_id, users=given["users"])
    return await _changed(tx, actor, "group.create", None, new_id)


async def save_group(tx: Transaction, actor: AuditActor, old: Row, given: dict[str, Any]) -> Row:
    fields = {name: given.get(name, old[name]) for name in ("title", "description")}
    await tx.value(_SAVE, id=old["id"], **fields)
    return await _changed(tx, actor, "group.save", old)


async def set_access(
    tx: Transaction, actor: AuditActor, old: Row, users: list[str] | None, conditions: list[dict[str, Any]] | None
) -> Row:
    """Each list that is given replaces the old one, under the lock of the project: the limit is never passed."""
    if users is not None:
        await tx.value(_CLEAR_USERS, id=old["id"])
        await tx.value(_PUT_USERS, id=old["id"], users=users)
    if conditions is not None:
        await tx.value(_SET_CONDITIONS, id=old["id"], conditions=conditions)
    return await _changed(tx, actor, "group.access", old)


async def set_tags(tx: Transaction, actor: AuditActor, old: Row, tags: list[str]) -> Row:
    if PROJECT_TAG not in tags:
        await _refuse_if_listed(tx, old)
    await tx.value(_SET_TAGS, id=old["id"], tags=tags)
    return await _changed(tx, actor, "group.tags", old)


async def _refuse_if_listed(tx: Transaction, group: Row) -> None:
    """Taken from an allow list without a word, the last group of it would leave the project open to everybody."""
    if await tx.value(_LISTED, id=group["id"], project_id=group["project_id"]):
        raise PermissionConflict("the group is in the allow or disallow list of its project: take it out there first")


async def read_group(runner: Runner, wanted: str) -> Row | None:
    return await runner.row(_ONE, id=wanted)


async def _locked(tx: Transaction, group: Row) -> Row:
    """The group as it is now, under the lock of its project."""
    project = await lock_project(tx, group["project_id"])
    if project["removed"]:
        raise Forbidden("removed")
    row = await read_group(tx, group["id"])
    if row is None:
        raise NotFound("group not found")
    return row


async def _changed(tx: Transaction, actor: AuditActor, operation: str, old: Row | None, new_id: str = "") -> Row:
    row = await read_group(tx, old["id"] if old else new_id)
    assert row is not None
    before = shown(old) if old else None
    await audit.write(tx, actor, operation, row["id"], before, shown(row), project_id=row["project_id"])
    return row


def shown(row: Any) -> dict[str, Any]:
    return {
        "id": row["id"],
        "project_id": row["project_id"],
        "title": row["title"],
        "description": row["description"],
        "tags": list(row["tags"]),
        "conditions": row["conditions"],
        "users": list(row["users"]),
    }
