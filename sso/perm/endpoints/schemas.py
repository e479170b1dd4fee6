"""POST /api/permissions/meta/schema (§2.8, §4.10)."""

import re
from typing import Any

from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Transaction, run_pure
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.endpoints.roles import require_root_for_root_role
from sso.perm.engine.required_rights import Operation
from sso.perm.input.schema import read_schema, read_schema_roles
from sso.perm.request import PermissionRequest
from sso.perm.stores.builtin_roles import complete_schema
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import read_roles, save_role
from sso.perm.stores.schemas import read_schema_json, save_schema, schema_json

_VERSION = re.compile(r'"?([0-9]{1,18})"?', re.ASCII)


class SchemaEndpoint:
    def __init__(self, database: Database, writes: PermissionWrites, authorizer: Authorizer) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        rights.require_on_target(Operation.SCHEMA_READ)
        return request.response(data=await self._database.transaction(read_schema_json, application_id))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        takes_long = is_large_json(data)
        changes, warnings = await run_pure(self._database, takes_long, read_schema, data)
        request.warnings.extend(warnings)
        roles, warnings = await run_pure(self._database, takes_long, read_schema_roles, data)
        request.warnings.extend(warnings)
        expected_version = _read_version(request.if_match)
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        rights.require_on_target(Operation.SCHEMA_MODIFY)
        for role in roles:
            require_root_for_root_role(rights, application_id, role["name"])
        if "secret_data" in changes and not rights.allow(Operation.SCHEMA_SECRET_DATA):
            if request.caller.in_management:
                raise rights.refusal(Operation.SCHEMA_SECRET_DATA)
            del changes["secret_data"]  # callers send it back as a get returned it
        scope = Scope.application(application_id)
        for role in roles:
            scope |= Scope.role(application_id, role["name"])
        write = await self._writes.run(
            request, scope, _save, request.caller, application_id, changes, roles, expected_version
        )
        return write.response(lambda schema: {"data": schema})


async def _save(
    tx: Transaction,
    caller: Caller,
    application_id: int,
    changes: dict[str, Any],
    role_changes: list[dict[str, Any]],
    expected_version: int | None,
) -> dict[str, Any]:
    old = await lock_application(tx, application_id)
    if expected_version is not None and old["version"] != expected_version:
        raise FieldError(("If-Match",), f"the schema has version {old['version']}", status=409)
    schema = complete_schema(old, changes)
    roles = await read_roles(tx, application_id)
    # Roles come first, because the new schema is checked against the roles as they are then.
    for role in role_changes:
        await save_role(tx, caller.actor, application_id, old["project_id"], schema, roles, role)
    return schema_json(await save_schema(tx, caller.actor, old, schema, roles), roles)


def _read_version(if_match: str | None) -> int | None:
    """The version in an If-Match header; None if any version matches."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = _VERSION.fullmatch(if_match.strip())
    if match is None:
        raise FieldError(("If-Match",), "must be a version number or *")
    return int(match[1])
