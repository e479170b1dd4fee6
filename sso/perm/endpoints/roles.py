"""POST /api/permissions/roles (§2.7, §4.9)."""

from dataclasses import replace
from typing import Any

from sso.core.errors import Forbidden, NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction, run_pure
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.input.names import read_segment
from sso.perm.input.protected_rules import includes_protected
from sso.perm.input.roles import read_role
from sso.perm.request import PermissionRequest
from sso.perm.stores import roles as role_store
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import delete_role, read_roles, role_json, save_role
from sso.perm.stores.schemas import schema_of

FIELDS = frozenset(("name", *role_store.FIELDS, "application_id"))


class RoleEndpoint:
    def __init__(self, database: Database, writes: PermissionWrites, authorizer: Authorizer) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        """One role by name, or all roles of the application."""
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        name = read_segment(data["name"], ("data", "name")) if "name" in data else None
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        target = rights.require_on_target(Operation.ROLE_READ if name else Operation.ROLE_LIST)
        roles = target.application.roles
        if name is None:
            return request.response(data=[role_json(role.record) for _, role in sorted(roles.items())])
        if name not in roles:
            raise NotFound("role not found")
        return request.response(data=role_json(roles[name].record))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        changes, warnings = await run_pure(self._database, is_large_json(data), read_role, data)
        request.warnings.extend(warnings)
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        rights.require_on_target(Operation.ROLE_MODIFY)
        require_root_for_root_role(rights, application_id, changes["name"])
        scope = Scope.role(application_id, changes["name"])
        write = await self._writes.run(request, scope, _save, request.caller, rights, application_id, changes)
        return write.response(lambda role: {"data": role_json(role)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        name = read_segment(data.get("name"), ("data", "name"))
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        rights.require_on_target(Operation.ROLE_MODIFY)
        scope = Scope.role(application_id, name, removed=True)
        write = await self._writes.run(request, scope, _delete, request.caller, rights, application_id, name)
        return write.response()


def require_root_for_root_role(rights: CallerRights, application_id: int, name: str) -> None:
    """Only root may change the role root of the central application, which has every right everywhere."""
    if application_id == CENTRAL_APPLICATION_ID and name == ROOT_ROLE and not rights.is_root:
        raise Forbidden("the role root is required")


async def _save(
    tx: Transaction, caller: Caller, rights: CallerRights, application_id: int, changes: dict[str, Any]
) -> RoleRecord:
    row = await lock_application(tx, application_id, rights.target.project_id)
    schema = schema_of(row)
    roles = await read_roles(tx, application_id)
    _require_schema_right(rights, roles.get(changes["name"]), changes, schema)
    return await save_role(tx, caller.actor, application_id, row["project_id"], schema, roles, changes)


async def _delete(tx: Transaction, caller: Caller, rights: CallerRights, application_id: int, name: str) -> None:
    row = await lock_application(tx, application_id, rights.target.project_id)
    role = (await read_roles(tx, application_id)).get(name)
    if role is None:
        raise NotFound("role not found")
    if role.protected:
        rights.require_on_target(Operation.SCHEMA_MODIFY)
    await delete_role(tx, caller.actor, application_id, row["project_id"], role)


def _require_schema_right(
    rights: CallerRights, old: RoleRecord | None, changes: dict[str, Any], schema: Schema
) -> None:
    """Protected roles, and roles with protected rules, are created and changed with canModifySchema only."""
    new = replace(old or RoleRecord(changes["name"]), **changes)
    if new.protected or (old is not None and old.protected) or includes_protected(new, schema):
        rights.require_on_target(Operation.SCHEMA_MODIFY)
