"""Projects and their members in the database of this machine."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sso.cli.administration import Fields, MemberChange, RecordChange, Records
from sso.cli.local.lookups import require_project
from sso.cli.local.permission_write import write_permissions
from sso.db.statement import Statement
from sso.perm.changes.scope import Scope
from sso.perm.stores.memberships import read_membership, save_membership
from sso.perm.stores.projects import (
    create_project,
    project_json,
    project_name_conflicts,
    read_project,
    referenced_applications,
    remove_project,
    save_project,
)

if TYPE_CHECKING:
    from sso.audit.trail import AuditActor
    from sso.cli.services import CommandServices
    from sso.db.transaction import Runner, Transaction

_LIST = Statement(
    """SELECT p.id, p.title, p.removed,
        (SELECT count(*) FROM applications a WHERE a.project_id = p.id AND NOT a.removed) AS applications,
        (SELECT count(*) FROM user_groups g WHERE g.project_id = p.id) AS groups,
        (SELECT count(DISTINCT user_id) FROM project_members m WHERE m.project_id = p.id) AS members
    FROM projects p ORDER BY p.id COLLATE "C\""""
)
_LISTS = ("allow", "disallow")


class LocalProjects:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services
        self._database = services.database

    async def list(self) -> Records:
        return [dict(row) for row in await self._database.rows(_LIST)]

    async def find(self, name: str) -> Fields:
        row = await require_project(self._database, name)
        return await _read(self._database, row["id"])

    async def add(self, project_id: str, fields: Fields, admins: Sequence[str]) -> None:
        scope = Scope.project(project_id)
        with project_name_conflicts():
            await write_permissions(
                self._services, scope, create_project, self._services.actor, project_id, fields, "", list(admins)
            )

    async def change(self, project_id: str, change: RecordChange, applications: Iterable[int] = ()) -> None:
        services, scope = self._services, Scope.project(project_id)
        with project_name_conflicts():
            await write_permissions(services, scope, _save, services.actor, project_id, change, [*applications])

    async def delete(self, project_id: str) -> None:
        await write_permissions(
            self._services, Scope.project(project_id), remove_project, self._services.actor, project_id
        )

    async def members(self, project_id: str) -> Records:
        members = []
        for member in (await read_membership(self._database, project_id))["users"]:
            user = await self._services.users.get(member["user_id"])
            members.append(
                {"user_id": member["user_id"], "login": user.login if user else None, "roles": member["roles"]}
            )
        return members

    async def change_member(self, project_id: str, user_id: str, change: MemberChange) -> bool:
        services, scope = self._services, Scope.project(project_id)
        return await write_permissions(services, scope, _save_member, services.actor, project_id, user_id, change)


async def _read(runner: "Runner", project_id: str) -> Fields:
    row = await read_project(runner, project_id)
    assert row is not None
    return project_json(row) | {name: list(row[name]) for name in _LISTS}


async def _save(
    tx: "Transaction", actor: "AuditActor", project_id: str, change: RecordChange, applications: list[int]
) -> None:
    from sso.perm.stores.locks import lock_active_project

    named = {*applications, *(referenced_applications(await _read(tx, project_id)) if applications else ())}
    await lock_active_project(tx, project_id, named)
    changes = change(await _read(tx, project_id))
    if lists := {name: changes[name] for name in _LISTS if name in changes}:
        await save_membership(tx, actor, project_id, lists)
    if fields := {name: value for name, value in changes.items() if name not in _LISTS}:
        await save_project(tx, actor, project_id, fields)


async def _save_member(
    tx: "Transaction", actor: "AuditActor", project_id: str, user_id: str, change: MemberChange
) -> bool:
    from sso.perm.stores.locks import lock_active_project

    await lock_active_project(tx, project_id)
    before = await read_membership(tx, project_id)
    others = [member for member in before["users"] if member["user_id"] != user_id]
    roles = next((dict(member["roles"]) for member in before["users"] if member["user_id"] == user_id), {})
    users = [{"user_id": user_id, "roles": changed}, *others] if (changed := change(roles)) else others
    after, _ = await save_membership(tx, actor, project_id, {"users": users})
    return after != before
