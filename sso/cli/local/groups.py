"""Groups of projects in the database of this machine."""

import secrets
from typing import TYPE_CHECKING

from sso.cli.administration import Fields, RecordChange, Records
from sso.cli.local.lookups import require_project
from sso.cli.local.permission_write import write_permissions
from sso.cli.lookups import only_group
from sso.db.statement import Statement
from sso.perm.changes.scope import Scope
from sso.perm.stores.groups import (
    change_group,
    create_group,
    delete_group,
    find_groups,
    group_json,
    lock_group,
)

if TYPE_CHECKING:
    from sso.audit.trail import AuditActor
    from sso.cli.services import CommandServices
    from sso.db.transaction import Row, Transaction

_LIST = Statement(
    """SELECT g.*, ARRAY(SELECT user_id FROM group_users u WHERE u.group_id = g.id ORDER BY position) AS users
    FROM user_groups g JOIN projects p ON p.id = g.project_id AND NOT p.removed
    WHERE CAST(:project_id AS text) IS NULL OR g.project_id = :project_id
    ORDER BY g.project_id COLLATE "C", g.title COLLATE "C", g.id COLLATE "C\""""
)


class LocalGroups:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services
        self._database = services.database

    async def list(self, project_id: str | None) -> Records:
        return [group_json(row) for row in await self._database.rows(_LIST, project_id=project_id)]

    async def find(self, name: str, project: str | None) -> Fields:
        project_id = (await require_project(self._database, project))["id"] if project else None
        groups = [group_json(row) for row in await find_groups(self._database, name, project_id)]
        return only_group(groups, name, project_id)

    async def add(self, project_id: str, fields: Fields) -> str:
        services, scope = self._services, Scope.project(project_id)
        group_id = secrets.token_hex(12)
        row = await write_permissions(services, scope, _create, services.actor, project_id, group_id, fields)
        return str(row["id"])

    async def change(self, group: Fields, change: RecordChange) -> None:
        services, project_id = self._services, group["project_id"]
        scope = Scope.project(project_id)
        await write_permissions(services, scope, _save, services.actor, group["id"], project_id, change)

    async def delete(self, group: Fields) -> None:
        services, project_id = self._services, group["project_id"]
        scope = Scope.project(project_id)
        await write_permissions(services, scope, _delete, services.actor, group["id"], project_id)


async def _create(tx: "Transaction", actor: "AuditActor", project_id: str, group_id: str, fields: Fields) -> "Row":
    from sso.perm.stores.locks import lock_active_project

    await lock_active_project(tx, project_id)
    return await create_group(tx, actor, project_id, group_id, fields)


async def _save(tx: "Transaction", actor: "AuditActor", group_id: str, project_id: str, change: RecordChange) -> None:
    from sso.perm.stores.locks import lock_active_project

    await lock_active_project(tx, project_id)
    row = await lock_group(tx, group_id, project_id)
    fields = change(group_json(row))
    await change_group(tx, actor, row, fields)


async def _delete(tx: "Transaction", actor: "AuditActor", group_id: str, project_id: str) -> None:
    from sso.perm.stores.locks import lock_active_project

    await lock_active_project(tx, project_id)
    await delete_group(tx, actor, await lock_group(tx, group_id, project_id))
