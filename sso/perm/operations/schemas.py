"""Schemas of applications: read, save (§2.8)."""

from typing import Any

from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Transaction, run_pure
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.engine.required_rights import Operation
from sso.perm.input.protected_rules import protected_rules
from sso.perm.input.schema import read_schema, read_schema_roles
from sso.perm.operations.roles import require_root_for_root_role
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.builtin_roles import complete_schema
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import read_roles, save_role
from sso.perm.stores.schemas import read_schema_json, save_schema, schema_json


class SchemaOperations:
    def __init__(self, database: Database, writes: PermissionWrites, authorizer: Authorizer) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer

    async def read(self, caller: Caller, application_id: int) -> dict[str, Any]:
        rights = await self._authorizer.caller_rights(caller, application_id)
        rights.require_on_target(Operation.SCHEMA_READ)
        return await self._database.transaction(read_schema_json, application_id)

    async def parse(
        self, context: OperationContext, data: dict[str, Any]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Returns the sections and the roles that were given. Raises FieldError."""
        takes_long = is_large_json(data)
        changes, warnings = await run_pure(self._database, takes_long, read_schema, data)
        roles, more = await run_pure(self._database, takes_long, read_schema_roles, data)
        context.warnings.extend((*warnings, *more))
        return changes, roles

    async def save(
        self,
        context: OperationContext,
        application_id: int,
        changes: dict[str, Any],
        roles: list[dict[str, Any]],
        expected_version: int | None = None,
    ) -> OperationResult[dict[str, Any]]:
        """Replaces the sections in ``changes``, and saves the roles. Other sections and roles stay."""
        rights = await self._authorizer.caller_rights(context.caller, application_id)
        rights.require_on_target(Operation.SCHEMA_MODIFY)
        for role in roles:
            require_root_for_root_role(rights, application_id, role["name"])
        if "secret_data" in changes and not rights.allow(Operation.SCHEMA_SECRET_DATA):
            if context.caller.in_management:
                raise rights.refusal(Operation.SCHEMA_SECRET_DATA)
            # Callers of §4.10 send it back as a get returned it.
            changes = {name: section for name, section in changes.items() if name != "secret_data"}
        scopes = [Scope.application(application_id), *(Scope.role(application_id, role["name"]) for role in roles)]
        return await self._writes.run(
            context, Scope.union(scopes), _save, context.caller, application_id, changes, roles, expected_version
        )


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
    protected = await tx.run_in_thread(protected_rules, schema)
    # Roles come first, because the new schema is checked against the roles as they are then.
    for role in role_changes:
        await save_role(tx, caller.actor, application_id, old["project_id"], protected, roles, role)
    return schema_json(await save_schema(tx, caller.actor, old, schema, roles), roles)
