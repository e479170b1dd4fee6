"""Groups of projects: list, create, change, delete (§2.5)."""

import secrets
from typing import Any

from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write, read_rights
from sso.perm.engine.management_rights import MANAGE_PROJECTS
from sso.perm.engine.required_rights import Operation, is_allowed
from sso.perm.operations.lookups import ProjectLookup
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.deleted_rows import Deletion
from sso.perm.stores.groups import (
    ACCESS_FIELDS,
    change_group,
    create_group,
    delete_group,
    group_id_conflicts,
    lock_group,
    read_group,
    read_groups,
)


class GroupOperations:
    def __init__(
        self, database: Database, writes: PermissionWrites, authorizer: Authorizer, projects: ProjectLookup
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects

    async def visible(self, caller: Caller, project_id: str) -> list[Row]:
        """Returns the groups of the project that the caller may see."""
        rights = await self._authorizer.caller_rights(caller)
        return [
            row
            for row in await read_groups(self._database, project_id)
            if rights.allow(Operation.GROUP_GET, project_id=project_id, group_id=row["id"])
        ]

    async def create(
        self,
        context: OperationContext,
        project_id: str,
        fields: dict[str, Any],
        group_id: str | None = None,
        undo_of: int | None = None,
    ) -> OperationResult[Row]:
        """Creates a group, which gives no rights to its users. ``group_id`` is that of a group that was deleted.

        ``undo_of``: the audit entry of that deletion. The group has the roles again that the project gave to it, and
        members have their roles at it again, if the caller may change the project.
        """
        rights = await self._authorizer.caller_rights(context.caller)
        project = await self._projects.require(rights, project_id, Operation.GROUP_SAVE)
        if project["removed"]:
            raise Forbidden("removed")
        if group_id is not None and not (rights.is_root or MANAGE_PROJECTS in rights.granted.management):
            raise FieldError(("group_id",), f"{MANAGE_PROJECTS} is required to choose it", status=403)
        key, scope = group_id or secrets.token_hex(12), Scope.project(project_id)
        if undo_of is not None and not rights.allow(Operation.PROJECT_SAVE, project_id=project_id):
            context.warnings.append("the group gets no roles again: you may not change its project")
            undo_of = None
        work = context.caller, rights, project_id, key, fields
        with group_id_conflicts():
            if undo_of is not None:
                return await self._writes.run(context, scope, _restore, *work, undo_of)
            return await self._writes.run(context, scope, _create, *work)

    async def change(
        self,
        context: OperationContext,
        group_id: str,
        changes: dict[str, Any],
        operation: Operation = Operation.GROUP_SAVE,
        project_id: str | None = None,
    ) -> OperationResult[Row]:
        """Saves the fields in ``changes``.

        ``operation`` is required if there are none. ``project_id`` must be the project of the group.
        """
        needed = {
            Operation.GROUP_SAVE: changes.keys() - ACCESS_FIELDS,
            Operation.GROUP_ACCESS: changes.keys() & ACCESS_FIELDS,
        }
        for item in [item for item, fields in needed.items() if fields] or [operation]:
            group = await self._authorize(context.caller, group_id, item)
        if project_id not in (None, group["project_id"]):
            raise FieldError(("data", "project_id"), "a group cannot move to another project")
        return await self._writes.run(context, _scope(group), _change, context.caller, group, changes)

    async def delete(self, context: OperationContext, group_id: str) -> OperationResult[None]:
        group = await self._authorize(context.caller, group_id, Operation.GROUP_DELETE)
        return await self._writes.run(context, _scope(group), _delete, context.caller, group)

    async def _authorize(self, caller: Caller, group_id: str, operation: Operation) -> Row:
        """Returns the group if the caller may do this to it. Only root learns that a group does not exist."""
        rights = await self._authorizer.caller_rights(caller)
        row = await read_group(self._database, group_id)
        if row is None:
            if rights.is_root:
                raise NotFound("group not found")
            raise rights.refusal(operation)
        rights.require(operation, project_id=row["project_id"], group_id=group_id)
        return row


def _scope(group: Row) -> Scope:
    return Scope.project(group["project_id"])


async def _create(
    tx: Transaction, caller: Caller, rights: CallerRights, project_id: str, group_id: str, fields: dict[str, Any]
) -> Row:
    """Users and conditions of a new group need the same right as those of one that exists."""
    group = await create_group(tx, caller.actor, project_id, group_id, fields)
    if any(fields.get(name) for name in ACCESS_FIELDS):
        _, present = await read_rights(tx, caller)  # a role over the whole project includes the new group
        if not is_allowed(Operation.GROUP_ACCESS, present, project_id=project_id, group_id=group_id):
            raise rights.refusal(Operation.GROUP_ACCESS)
    return group


async def _restore(
    tx: Transaction,
    caller: Caller,
    rights: CallerRights,
    project_id: str,
    group_id: str,
    fields: dict[str, Any],
    undo_of: int,
) -> Row:
    row = ("user_groups", project_id, group_id)
    async with delegated_write(tx, caller, project_id):
        deletion = await Deletion.find(tx, caller.actor, undo_of, "group.delete", group_id, row)
        group = await _create(tx, caller, rights, project_id, group_id, fields)
        await deletion.restore_actions(project_id, lambda _, action: bool(action["group_id"] == group_id))
        await deletion.restore_members(project_id, ["groups"], group_id)
    return group


async def _change(tx: Transaction, caller: Caller, group: Row, changes: dict[str, Any]) -> Row:
    if changes.keys() & ACCESS_FIELDS:
        async with delegated_write(tx, caller, group["project_id"]):
            return await change_group(tx, caller.actor, await lock_group(tx, group["id"], group["project_id"]), changes)
    return await change_group(tx, caller.actor, await lock_group(tx, group["id"], group["project_id"]), changes)


async def _delete(tx: Transaction, caller: Caller, group: Row) -> None:
    async with delegated_write(tx, caller, group["project_id"]):
        await delete_group(tx, caller.actor, await lock_group(tx, group["id"], group["project_id"]))
