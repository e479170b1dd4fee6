"""Roles of applications: read, save, delete (§2.7)."""

from typing import Any

from msgspec.structs import replace

from sso.core.errors import Forbidden, NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction, run_pure
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.engine.records import RoleRecord
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.input.protected_rules import includes_protected, protected_rules
from sso.perm.input.roles import read_role
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.deleted_rows import Deletion
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_revision
from sso.perm.stores.roles import delete_role, save_role


class RoleOperations:
    def __init__(
        self, database: Database, writes: PermissionWrites, authorizer: Authorizer, facts: StoredFacts
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._facts = facts

    async def read(self, caller: Caller, application_id: int, name: str) -> RoleRecord:
        rights = await self._authorizer.caller_rights(caller, application_id)
        role = rights.require_on_target(Operation.ROLE_READ).application.roles.get(name)
        if role is None:
            raise NotFound("role not found")
        return role.record

    async def read_all(self, caller: Caller, application_id: int) -> list[RoleRecord]:
        """Returns the roles of the application by their names."""
        rights = await self._authorizer.caller_rights(caller, application_id)
        roles = rights.require_on_target(Operation.ROLE_LIST).application.roles
        return [role.record for _, role in sorted(roles.items())]

    async def parse(self, context: OperationContext, data: dict[str, Any]) -> dict[str, Any]:
        """Returns the fields of a role that were given. Raises FieldError."""
        changes, warnings = await run_pure(self._database, is_large_json(data), read_role, data)
        context.warnings.extend(warnings)
        return changes

    async def save(
        self, context: OperationContext, application_id: int, changes: dict[str, Any], undo_of: int | None = None
    ) -> OperationResult[RoleRecord]:
        """Creates the role, or saves the fields in ``changes``.

        ``undo_of``: the audit entry of the deletion of this role. The users and groups that had it have it again, as
        far as the caller may give it to them; otherwise there is a warning.
        """
        rights = await self._authorizer.caller_rights(context.caller, application_id)
        rights.require_on_target(Operation.ROLE_MODIFY)
        require_root_for_root_role(rights, application_id, changes["name"])
        scope = Scope.role(application_id, changes["name"])
        work = self._facts, context.caller, rights, application_id, changes
        if undo_of is None:
            return await self._writes.run(context, scope, _save, *work)
        project_id = rights.target.project_id
        if project_id is not None and not rights.allow(Operation.PROJECT_SAVE, project_id=project_id):
            context.warnings.append(f"groups do not get the role again: you may not change the project {project_id}")
            project_id = None
        is_given = "roles" in rights.granted.writable_sections(own=False)
        if not is_given:
            context.warnings.append("users do not get the role again: you may not give roles of this application")
        scope |= Scope.project(project_id, read_applications=[application_id])
        return await self._writes.run(context, scope, _restore, *work, undo_of, project_id, is_given)

    async def delete(self, context: OperationContext, application_id: int, name: str) -> OperationResult[None]:
        rights = await self._authorizer.caller_rights(context.caller, application_id)
        rights.require_on_target(Operation.ROLE_MODIFY)
        scope = Scope.role(application_id, name, removed=True)
        work = self._facts, context.caller, rights, application_id, name
        return await self._writes.run(context, scope, _delete, *work)


def require_root_for_root_role(rights: CallerRights, application_id: int, name: str) -> None:
    """Only root may change the role root of the central application, which has every right everywhere."""
    if application_id == CENTRAL_APPLICATION_ID and name == ROOT_ROLE and not rights.is_root:
        raise Forbidden("the role root is required")


async def _save(
    tx: Transaction,
    facts: StoredFacts,
    caller: Caller,
    rights: CallerRights,
    application_id: int,
    changes: dict[str, Any],
) -> RoleRecord:
    row = await lock_revision(tx, application_id, rights.target.project_id)
    compiled = await facts.read_compiled(tx, application_id, row["revision"])
    protected = await run_pure(tx, compiled.is_large, protected_rules, compiled.schema)
    roles = compiled.role_records
    _require_schema_right(rights, roles.get(changes["name"]), changes, protected)
    return await save_role(tx, caller.actor, application_id, row["project_id"], protected, roles, changes)


async def _restore(
    tx: Transaction,
    facts: StoredFacts,
    caller: Caller,
    rights: CallerRights,
    application_id: int,
    changes: dict[str, Any],
    undo_of: int,
    project_id: str | None,
    is_given: bool,
) -> RoleRecord:
    """``project_id``: the project whose groups get the role again. ``is_given``: its users get it again."""
    name = changes["name"]
    application, target = await lock_revision(tx, application_id), f"{application_id}/{name}"
    row = ("roles", str(application_id), name)
    deletion = await Deletion.find(tx, caller.actor, undo_of, "role.delete", target, row)
    role = await _save(tx, facts, caller, rights, application_id, changes)
    if is_given:
        await deletion.restore_assignments(application, name, role.user_limit)
    if project_id is not None:
        async with delegated_write(tx, caller, project_id, [application_id]):
            await deletion.restore_actions(
                project_id, lambda key, action: key == str(application_id) and action["role"] == name
            )
    return role


async def _delete(
    tx: Transaction, facts: StoredFacts, caller: Caller, rights: CallerRights, application_id: int, name: str
) -> None:
    row = await lock_revision(tx, application_id, rights.target.project_id)
    role = (await facts.read_compiled(tx, application_id, row["revision"])).role_records.get(name)
    if role is None:
        raise NotFound("role not found")
    if role.protected:
        rights.require_on_target(Operation.SCHEMA_MODIFY)
    await delete_role(tx, caller.actor, application_id, row["project_id"], role)


def _require_schema_right(
    rights: CallerRights, old: RoleRecord | None, changes: dict[str, Any], protected: frozenset[str]
) -> None:
    """Protected roles, and roles with protected rules, are created and changed with canModifySchema only."""
    new = replace(old or RoleRecord(changes["name"]), **changes)
    if new.protected or (old is not None and old.protected) or includes_protected(new, protected):
        rights.require_on_target(Operation.SCHEMA_MODIFY)
