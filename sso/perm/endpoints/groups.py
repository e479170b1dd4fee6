"""POST /api/permissions/group, and its access settings and tags (§2.5, §4.7)."""

import secrets
from typing import Any

from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Row, Transaction, run_pure
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.endpoints.project_lookup import ProjectLookup
from sso.perm.engine.required_rights import Operation
from sso.perm.input.groups import MAX_GROUP_USERS, read_group_conditions, read_group_fields, read_group_users
from sso.perm.input.names import read_group_id
from sso.perm.input.tags import read_tags
from sso.perm.request import PermissionRequest
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.groups import (
    create_group,
    delete_group,
    group_json,
    lock_group,
    read_group,
    read_groups,
    save_group,
    set_group_access,
    set_group_tags,
)

FIELDS = frozenset(("id", "project_id", "title", "description", "tags", "conditions", "users"))
ACCESS_FIELDS = ("id", "project_id", "title", "conditions", "users")


class GroupEndpoint:
    def __init__(
        self, database: Database, writes: PermissionWrites, authorizer: Authorizer, projects: ProjectLookup
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        """The groups of a project that the caller manages, an empty list if there are none."""
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        project_id = await self._projects.read_project_id(data.get("project_id"), ("data", "project_id"))
        rights = await self._authorizer.caller_rights(request.caller)
        groups = [
            group_json(row)
            for row in await read_groups(self._database, project_id)
            if rights.allow(Operation.GROUP_GET, project_id=project_id, group_id=row["id"])
        ]
        return request.response(data={"groups": groups, "max_users_cnt": MAX_GROUP_USERS})

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        fields = read_group_fields(data)
        if "group_id" in request.fields:
            return await self._update(request, fields, data)
        if "title" not in fields:
            raise FieldError(("title",), "is required")
        project_id = await self._projects.read_project_id(data.get("project_id"), ("data", "project_id"))
        rights = await self._authorizer.caller_rights(request.caller)
        project = await self._projects.require(rights, project_id, Operation.GROUP_SAVE)
        if project["removed"]:
            raise Forbidden("removed")
        write = await self._writes.run(
            request,
            Scope.project(project_id),
            create_group,
            request.caller.actor,
            project_id,
            secrets.token_hex(12),
            fields,
        )
        return write.response(lambda row: {"data": group_json(row)})

    async def _update(
        self, request: PermissionRequest, changes: dict[str, Any], data: dict[str, Any]
    ) -> dict[str, Any]:
        project_id = None
        if "project_id" in data:
            project_id = await self._projects.read_project_id(data["project_id"], ("data", "project_id"))
        group = await self.authorize(request, Operation.GROUP_SAVE)
        if project_id is not None and project_id != group["project_id"]:
            raise FieldError(("data", "project_id"), "a group cannot move to another project")
        write = await self._writes.run(request, _scope(group), _save, request.caller.actor, group, changes)
        return write.response(lambda row: {"data": group_json(row)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        group = await self.authorize(request, Operation.GROUP_DELETE)
        return (await self._writes.run(request, _scope(group), _delete, request.caller, group)).response()

    async def save_access(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, frozenset(ACCESS_FIELDS))
        users = read_group_users(data["users"]) if "users" in data else None
        conditions = None
        if "conditions" in data:
            conditions, warnings = await run_pure(
                self._database, is_large_json(data["conditions"]), read_group_conditions, data["conditions"]
            )
            request.warnings.extend(warnings)
        group = await self.authorize(request, Operation.GROUP_ACCESS)
        write = await self._writes.run(request, _scope(group), _set_access, request.caller, group, users, conditions)
        return write.response(lambda row: {"data": {name: group_json(row)[name] for name in ACCESS_FIELDS}})

    async def save_tags(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        tags = read_tags(data.get("tags"), ("data", "tags"))
        group = await self.authorize(request, Operation.GROUP_SAVE)
        write = await self._writes.run(request, _scope(group), _set_tags, request.caller.actor, group, tags)
        return write.response(lambda row: {"data": group_json(row)})

    async def authorize(self, request: PermissionRequest, operation: Operation) -> Row:
        """The group of the request, if the caller may do this to it. Only root learns that a group does not exist."""
        group_id = read_group_id(request.fields.get("group_id"), ("group_id",))
        rights = await self._authorizer.caller_rights(request.caller)
        row = await read_group(self._database, group_id)
        if row is None:
            if rights.is_root:
                raise NotFound("group not found")
            raise rights.refusal(operation)
        rights.require(operation, project_id=row["project_id"], group_id=group_id)
        return row


def _scope(group: Row) -> Scope:
    return Scope.project(group["project_id"])


async def _save(tx: Transaction, actor: AuditActor, group: Row, changes: dict[str, Any]) -> Row:
    return await save_group(tx, actor, await lock_group(tx, group["id"], group["project_id"]), changes)


async def _delete(tx: Transaction, caller: Caller, group: Row) -> None:
    async with delegated_write(tx, caller, group["project_id"]):
        await delete_group(tx, caller.actor, await lock_group(tx, group["id"], group["project_id"]))


async def _set_access(
    tx: Transaction, caller: Caller, group: Row, users: list[str] | None, conditions: list[dict[str, Any]] | None
) -> Row:
    async with delegated_write(tx, caller, group["project_id"]):
        old = await lock_group(tx, group["id"], group["project_id"])
        return await set_group_access(tx, caller.actor, old, users, conditions)


async def _set_tags(tx: Transaction, actor: AuditActor, group: Row, tags: list[str]) -> Row:
    return await set_group_tags(tx, actor, await lock_group(tx, group["id"], group["project_id"]), tags)
