"""Projects and their members in the management API, which changes in one request what §4.6 has several for."""

from typing import Any

from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer, CallerRights
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.endpoints.account_lookup import AccountLookup
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.endpoints.project_lookup import ProjectLookup
from sso.perm.endpoints.projects import require_second_factor
from sso.perm.engine.management_rights import MANAGE_PROJECTS
from sso.perm.engine.project_quota import project_quota
from sso.perm.engine.required_rights import Operation
from sso.perm.input.membership import check_membership_shape
from sso.perm.input.names import project_id_from_title
from sso.perm.input.project import read_project_fields
from sso.perm.request import PermissionRequest
from sso.perm.stores.memberships import read_membership, save_membership
from sso.perm.stores.projects import (
    MAX_REMOVED_PROJECTS,
    create_project,
    project_json,
    project_name_conflicts,
    referenced_applications,
    require_author_quota,
    restore_project,
    save_project,
)

LISTS = ("allow", "disallow")


class ManagedProjectEndpoint:
    def __init__(
        self, writes: PermissionWrites, authorizer: Authorizer, projects: ProjectLookup, accounts: AccountLookup
    ) -> None:
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects
        self._accounts = accounts

    async def create(self, request: PermissionRequest) -> dict[str, Any]:
        """Creates a project with all its fields. Its author is the caller; without ``admins``, also its administrator.

        A caller who may only create projects is always an administrator, and the others need a second factor (§4.6).
        """
        data = request.required_data()
        project_id = project_id_from_title(data.get("title"), ("title",))
        fields, warnings = read_project_fields(project_id, data)
        request.warnings.extend(warnings)
        if fields.get("settings", {}).get("services"):
            raise FieldError(("settings", "services"), "a new project has no applications")
        rights = await self._authorizer.caller_rights(request.caller)
        rights.require(Operation.PUBLISH)
        manages = rights.is_root or MANAGE_PROJECTS in rights.granted.management
        admins = await self._find_admins(request, data.get("admins", []), need_factor=not manages)
        author = request.caller.user_id
        if not manages or not admins:
            admins = [author, *admins]
        max_projects = None if manages else project_quota(rights.granted.central)
        max_removed = None if manages else MAX_REMOVED_PROJECTS
        with project_name_conflicts():
            write = await self._writes.run(
                request,
                Scope.project(project_id),
                _create,
                request.caller.actor,
                project_id,
                fields,
                admins,
                max_projects,
                max_removed,
            )
        return write.response(lambda row: {"data": project_json(row)})

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        """Saves the fields of the record, and its allow and disallow lists."""
        data = request.required_data()
        project_id = await self._projects.read_project_id(data.get("id"))
        changes, warnings = read_project_fields(project_id, data)
        request.warnings.extend(warnings)
        lists = {name: data[name] for name in LISTS if name in data}
        check_membership_shape(lists)
        await self._authorize(request, project_id, Operation.PROJECT_SAVE)
        scope = Scope.project(project_id, read_applications=referenced_applications(changes))
        with project_name_conflicts():
            write = await self._writes.run(request, scope, _save, request.caller, project_id, changes, lists)
        return write.response(lambda row: {"data": project_json(row)})

    async def restore(self, request: PermissionRequest) -> dict[str, Any]:
        """Restores a removed project. Only root may, because all its members get their rights back."""
        project_id = await self._projects.read_project_id(request.required_data().get("id"))
        rights = await self._authorizer.caller_rights(request.caller)
        await self._projects.require(rights, project_id, Operation.PROJECT_DELETE)
        if not rights.is_root:
            raise Forbidden("the role root is required to restore a project: its members get their rights back")
        write = await self._writes.run(
            request, Scope.project(project_id), restore_project, request.caller.actor, project_id
        )
        return write.response(lambda row: {"data": project_json(row)})

    async def save_member(self, request: PermissionRequest) -> dict[str, Any]:
        """Replaces the roles of one user in the project; without ``roles``, the user leaves it."""
        data = request.required_data()
        project_id = await self._projects.read_project_id(data.get("id"))
        member: dict[str, Any] = {name: data[name] for name in ("user_id", "roles") if name in data}
        check_membership_shape({"users": [member]})
        await self._authorize(request, project_id, Operation.MEMBERSHIP_SAVE)
        write = await self._writes.run(
            request, Scope.project(project_id), _save_member, request.caller, project_id, member
        )
        request.warnings.extend(write.result)
        return write.response(lambda _: {"data": member})

    async def find_member(self, request: PermissionRequest, project_id: str, login: str) -> str:
        """Returns the id of the user with this login, for callers who may give users roles in the project."""
        await self._authorize(request, await self._projects.read_project_id(project_id), Operation.MEMBERSHIP_SAVE)
        user = await self._accounts.find(request.caller.actor, login)
        if user is None:
            raise FieldError(("login",), "there is no user with this login", status=404)
        return user.user_id

    async def _authorize(self, request: PermissionRequest, project_id: str, operation: Operation) -> CallerRights:
        rights = await self._authorizer.caller_rights(request.caller)
        project = await self._projects.require(rights, project_id, operation)
        if project["removed"]:
            raise Forbidden("removed")
        return rights

    async def _find_admins(self, request: PermissionRequest, names: list[str], *, need_factor: bool) -> list[str]:
        user_ids = []
        for index, name in enumerate(names):
            user = await self._accounts.find(request.caller.actor, name)
            if user is None or user.disabled:
                raise FieldError(("admins", index), "user not found", status=404)
            if need_factor:
                require_second_factor(user, ("admins", index))
            user_ids.append(user.user_id)
        return user_ids


async def _create(
    tx: Transaction,
    actor: AuditActor,
    project_id: str,
    fields: dict[str, Any],
    admins: list[str],
    max_projects: int | None,
    max_removed: int | None,
) -> Row:
    author = actor.user_id
    await require_author_quota(tx, author, max_projects, max_removed)
    return await create_project(tx, actor, project_id, fields, author, [user_id for user_id in admins if user_id])


async def _save(
    tx: Transaction, caller: Caller, project_id: str, changes: dict[str, Any], lists: dict[str, Any]
) -> Row:
    async with delegated_write(tx, caller, project_id, referenced_applications(changes)):
        if lists:
            await save_membership(tx, caller.actor, project_id, lists)
        return await save_project(tx, caller.actor, project_id, changes)


async def _save_member(tx: Transaction, caller: Caller, project_id: str, member: dict[str, Any]) -> list[str]:
    """The member comes first in the list, so that the location of an error can be told from those of other members."""
    user_id = member["user_id"]
    async with delegated_write(tx, caller, project_id):
        users = (await read_membership(tx, project_id))["users"]
        others = [user for user in users if user["user_id"] != user_id]
        try:
            saved, warnings = await save_membership(
                tx, caller.actor, project_id, {"users": [member, *others] if "roles" in member else others}
            )
        except FieldError as error:
            raise error.without("users", 0) from None
        if "roles" in member and all(user["user_id"] != user_id for user in saved["users"]):
            raise FieldError(("roles",), "must have a role")
        return [warning.removeprefix("users[0].") for warning in warnings]
