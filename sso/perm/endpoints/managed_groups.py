"""Groups in the management API, which changes in one request what §4.7 has several for."""

import secrets
from typing import Any

from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.endpoints.groups import GroupEndpoint
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.endpoints.project_lookup import ProjectLookup
from sso.perm.engine.management_rights import MANAGE_PROJECTS
from sso.perm.engine.required_rights import Operation
from sso.perm.input.groups import read_group_conditions, read_group_fields, read_group_users
from sso.perm.input.tags import read_tags
from sso.perm.request import PermissionRequest
from sso.perm.stores.groups import (
    create_group,
    group_id_conflicts,
    group_json,
    lock_group,
    save_group,
    set_group_access,
    set_group_tags,
)

ACCESS_FIELDS = frozenset(("users", "conditions"))


class ManagedGroupEndpoint:
    def __init__(
        self, writes: PermissionWrites, authorizer: Authorizer, projects: ProjectLookup, groups: GroupEndpoint
    ) -> None:
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects
        self._groups = groups

    async def create(self, request: PermissionRequest) -> dict[str, Any]:
        """Creates a group. A new group gives no rights to its users."""
        fields = _read_fields(request)
        if "title" not in fields:
            raise FieldError(("title",), "is required")
        project_id = await self._projects.read_project_id(request.required_data().get("project_id"), ("project_id",))
        rights = await self._authorizer.caller_rights(request.caller)
        project = await self._projects.require(rights, project_id, Operation.GROUP_SAVE)
        if project["removed"]:
            raise Forbidden("removed")
        group_id = request.required_data().get("group_id")
        if group_id and not (rights.is_root or MANAGE_PROJECTS in rights.granted.management):
            raise FieldError(("group_id",), f"{MANAGE_PROJECTS} is required to choose it", status=403)
        group_id = group_id or secrets.token_hex(12)
        scope = Scope.project(project_id)
        with group_id_conflicts():
            write = await self._writes.run(
                request, scope, create_group, request.caller.actor, project_id, group_id, fields
            )
        return write.response(lambda row: {"data": group_json(row)})

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        fields = _read_fields(request)
        operations = [
            operation
            for operation, needed in (
                (Operation.GROUP_SAVE, fields.keys() - ACCESS_FIELDS),
                (Operation.GROUP_ACCESS, fields.keys() & ACCESS_FIELDS),
            )
            if needed or not fields
        ]
        for operation in operations:
            group = await self._groups.authorize(request, operation)
        scope = Scope.project(group["project_id"])
        write = await self._writes.run(request, scope, _save, request.caller, group, fields)
        return write.response(lambda row: {"data": group_json(row)})


def _read_fields(request: PermissionRequest) -> dict[str, Any]:
    """The fields of the group that were given, ready to store."""
    data = request.required_data()
    fields = read_group_fields(data)
    if "tags" in data:
        fields["tags"] = read_tags(data["tags"])
    if "users" in data:
        fields["users"] = read_group_users(data["users"])
    if "conditions" in data:
        fields["conditions"], warnings = read_group_conditions(data["conditions"])
        request.warnings.extend(warnings)
    return fields


async def _save(tx: Transaction, caller: Caller, group: Row, fields: dict[str, Any]) -> Row:
    async with delegated_write(tx, caller, group["project_id"]):
        row = await lock_group(tx, group["id"], group["project_id"])
        if fields.keys() & {"title", "description"}:
            row = await save_group(tx, caller.actor, row, fields)
        if "tags" in fields:
            row = await set_group_tags(tx, caller.actor, row, fields["tags"])
        if fields.keys() & ACCESS_FIELDS:
            row = await set_group_access(tx, caller.actor, row, fields.get("users"), fields.get("conditions"))
        return row
