"""Roles, and their assignments to users, in the database of this machine."""

from dataclasses import replace
from typing import TYPE_CHECKING

from sso.cli.administration import AssignmentChange, RoleChange
from sso.cli.local.lookups import require_application
from sso.cli.local.permission_write import write_permissions
from sso.cli.lookups import require_role
from sso.perm.changes.scope import Scope
from sso.perm.engine.records import RoleRecord
from sso.perm.stores.applications import refuse_removed_application
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import delete_role, read_roles, save_role

if TYPE_CHECKING:
    from sso.audit.trail import AuditActor
    from sso.cli.services import CommandServices
    from sso.db.transaction import Transaction


class LocalRoles:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services
        self._database = services.database

    async def list(self, application_id: int) -> dict[str, RoleRecord]:
        await require_application(self._database, application_id)
        return await read_roles(self._database, application_id)

    async def require(self, application_id: int, name: str) -> None:
        require_role(await self.list(application_id), name, application_id)

    async def change(self, application_id: int, name: str, change: RoleChange) -> bool:
        await require_application(self._database, application_id)
        services, scope = self._services, Scope.role(application_id, name, removed=True)
        return await write_permissions(services, scope, _save, services.actor, application_id, name, change)

    async def assign(self, user_id: str, application_id: int, role: str, change: AssignmentChange) -> bool:
        await require_application(self._database, application_id)
        services, scope = self._services, Scope.record(user_id, application_id)
        return await write_permissions(services, scope, _assign, services.actor, user_id, application_id, role, change)


async def _save(tx: "Transaction", actor: "AuditActor", application_id: int, name: str, change: RoleChange) -> bool:
    from sso.perm.input.roles import read_role
    from sso.perm.stores.schemas import schema_of

    row = await lock_application(tx, application_id)
    await refuse_removed_application(tx, row)
    roles = await read_roles(tx, application_id)
    fields = change(roles)
    if fields is None:
        await delete_role(tx, actor, application_id, row["project_id"], roles[name])
        return True
    changes, _ = read_role({"name": name, **fields})
    if name in roles and replace(roles[name], **changes) == roles[name]:
        return False
    await save_role(tx, actor, application_id, row["project_id"], schema_of(row), roles, changes)
    return True


async def _assign(
    tx: "Transaction", actor: "AuditActor", user_id: str, application_id: int, role: str, change: AssignmentChange
) -> bool:
    from sso.perm.stores.user_data import read_assigned_roles, read_record, save_record

    row = await lock_application(tx, application_id)
    await refuse_removed_application(tx, row)
    known = await read_roles(tx, application_id)
    old = await read_record(tx, user_id, application_id)
    assigned = tuple(change(list(await read_assigned_roles(tx, user_id, application_id))))
    require_role(known, role, application_id)
    return await save_record(tx, actor, user_id, row, known, {}, assigned) != old
