"""Projects: read, create, change, remove, restore (§2.4)."""

from collections.abc import Sequence
from typing import Any

from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError, FieldPath
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.engine.management_rights import MANAGE_PROJECTS
from sso.perm.engine.project_quota import project_quota
from sso.perm.engine.required_rights import Operation
from sso.perm.operations.lookups import AccountLookup, ProjectLookup
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.memberships import save_membership
from sso.perm.stores.projects import (
    MAX_REMOVED_PROJECTS,
    create_project,
    project_name_conflicts,
    referenced_applications,
    remove_project,
    require_author_quota,
    restore_project,
    save_project,
)


class ProjectOperations:
    def __init__(
        self, writes: PermissionWrites, authorizer: Authorizer, projects: ProjectLookup, accounts: AccountLookup
    ) -> None:
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects
        self._accounts = accounts

    async def read(self, caller: Caller, project_id: str) -> Row:
        rights = await self._authorizer.caller_rights(caller)
        return await self._projects.require(rights, project_id, Operation.PROJECT_GET)

    async def create(
        self,
        context: OperationContext,
        project_id: str,
        fields: dict[str, Any],
        admins: Sequence[str],
        *,
        publishes: bool = False,
    ) -> OperationResult[Row]:
        """Creates a project. Its author is the caller; without ``admins``, ids or logins, also its administrator.

        If the project is published (§4.6), or by a caller who may only create projects, the author is always an
        administrator, and the others need a second factor.
        """
        if fields.get("settings", {}).get("services"):
            raise FieldError(("settings", "services"), "a new project has no applications")
        caller = context.caller
        rights = await self._authorizer.caller_rights(caller)
        rights.require(Operation.PUBLISH)
        manages = rights.is_root or MANAGE_PROJECTS in rights.granted.management
        is_strict = publishes or not manages
        user_ids = []
        for index, name in enumerate(admins):
            path: FieldPath = () if publishes else ("admins", index)
            user_ids.append(await self._find_administrator(caller.actor, name, path, strict=is_strict))
        if is_strict or not user_ids:
            user_ids = [caller.user_id, *user_ids]
        quota = None if manages else (project_quota(rights.granted.central), MAX_REMOVED_PROJECTS)
        with project_name_conflicts():
            return await self._writes.run(
                context, Scope.project(project_id), _create, caller.actor, project_id, fields, user_ids, quota
            )

    async def change(
        self, context: OperationContext, project_id: str, changes: dict[str, Any], lists: dict[str, Any] | None = None
    ) -> OperationResult[Row]:
        """Saves the fields in ``changes``, and the given ones of the lists ``allow`` and ``disallow``."""
        await self._authorize(context.caller, project_id, Operation.PROJECT_SAVE)
        scope = Scope.project(project_id, read_applications=referenced_applications(changes))
        with project_name_conflicts():
            return await self._writes.run(context, scope, _change, context.caller, project_id, changes, lists or {})

    async def remove(self, context: OperationContext, project_id: str) -> OperationResult[None]:
        """Marks the project as removed: its members and groups lose the rights that it gives."""
        await self._authorize(context.caller, project_id, Operation.PROJECT_DELETE)
        scope = Scope.project(project_id)
        return await self._writes.run(context, scope, remove_project, context.caller.actor, project_id)

    async def restore(self, context: OperationContext, project_id: str) -> OperationResult[Row]:
        """Restores a removed project. Only root may, because all its members get their rights back."""
        rights = await self._authorizer.caller_rights(context.caller)
        await self._projects.require(rights, project_id, Operation.PROJECT_DELETE)
        if not rights.is_root:
            raise Forbidden("the role root is required to restore a project: its members get their rights back")
        scope = Scope.project(project_id)
        return await self._writes.run(context, scope, restore_project, context.caller.actor, project_id)

    async def _authorize(self, caller: Caller, project_id: str, operation: Operation) -> None:
        rights = await self._authorizer.caller_rights(caller)
        if (await self._projects.require(rights, project_id, operation))["removed"]:
            raise Forbidden("removed")

    async def _find_administrator(self, actor: AuditActor, name: str, path: FieldPath, *, strict: bool) -> str:
        user = await self._accounts.find(actor, name)
        if user is None or user.disabled:
            raise FieldError(path, "user not found", status=404)
        if strict and not set(user.second_factors) - {"email"}:
            raise FieldError(path or ("user",), "has no second factor (codes by e-mail do not count)", status=409)
        return user.user_id


async def _create(
    tx: Transaction,
    actor: AuditActor,
    project_id: str,
    fields: dict[str, Any],
    admins: list[str],
    quota: tuple[int | None, int] | None,
) -> Row:
    await require_author_quota(tx, actor.user_id, *(quota or (None, None)))
    return await create_project(tx, actor, project_id, fields, actor.user_id, [item for item in admins if item])


async def _change(
    tx: Transaction, caller: Caller, project_id: str, changes: dict[str, Any], lists: dict[str, Any]
) -> Row:
    async with delegated_write(tx, caller, project_id, referenced_applications(changes)):
        if lists:
            await save_membership(tx, caller.actor, project_id, lists)
        return await save_project(tx, caller.actor, project_id, changes)
