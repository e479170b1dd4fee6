"""POST /api/permissions/project, /publish and /user/info (§2.4, §4.6)."""

from typing import Any

from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError, FieldPath
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.endpoints.account_lookup import AccountLookup, TargetUser
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.endpoints.project_lookup import ProjectLookup
from sso.perm.engine.project_quota import project_quota
from sso.perm.engine.required_rights import Operation
from sso.perm.input import validators
from sso.perm.input.names import project_id_from_title
from sso.perm.input.project import read_project_fields
from sso.perm.request import PermissionRequest
from sso.perm.stores.projects import (
    MAX_REMOVED_PROJECTS,
    create_project,
    project_json,
    project_name_conflicts,
    referenced_applications,
    remove_project,
    require_author_quota,
    save_project,
)

READ_ONLY = frozenset(("id", "tags", "author", "created", "removed"))
FIELDS = READ_ONLY | {"title", "description", "aliases", "settings"}


class ProjectEndpoint:
    def __init__(
        self,
        database: Database,
        writes: PermissionWrites,
        authorizer: Authorizer,
        projects: ProjectLookup,
        accounts: AccountLookup,
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects
        self._accounts = accounts

    async def user_info(self, request: PermissionRequest) -> dict[str, Any]:
        """The number of projects whose author is the caller."""
        facts = request.facts or self._authorizer.facts
        return request.response(projects=await facts.count_authored(request.caller.user_id))

    async def publish(self, request: PermissionRequest) -> dict[str, Any]:
        title = request.text("project", 1024)
        project_id = project_id_from_title(title)
        target_name = None
        if "user" in request.fields:
            target_name = validators.read_text(request.fields["user"], ("user",), 320, min_length=1)
        rights = await self._authorizer.caller_rights(request.caller)
        rights.require(Operation.PUBLISH)
        target = await self._require_user(request, target_name) if target_name is not None else None
        author = request.caller.user_id
        admins = [author, *([target.user_id] if target else [])]
        max_projects = None if rights.is_root else project_quota(rights.granted.central)
        max_removed = None if rights.is_root else MAX_REMOVED_PROJECTS
        with project_name_conflicts():
            write = await self._writes.run(
                request,
                Scope.project(project_id),
                _publish,
                request.caller.actor,
                project_id,
                title,
                author,
                admins,
                max_projects,
                max_removed,
            )
        return write.response(lambda row: {"data": project_json(row)})

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        row = await self._authorize(request, project_id, Operation.PROJECT_GET)
        return request.response(data=project_json(row))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        changes, warnings = read_project_fields(project_id, request.required_data())
        request.warnings.extend(warnings)
        project = await self._authorize(request, project_id, Operation.PROJECT_SAVE)
        if project["removed"]:
            raise Forbidden("removed")
        with project_name_conflicts():
            scope = Scope.project(project_id, read_applications=referenced_applications(changes))
            write = await self._writes.run(request, scope, _save, request.caller, project_id, changes)
        return write.response(lambda row: {"data": project_json(row)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        project = await self._authorize(request, project_id, Operation.PROJECT_DELETE)
        if project["removed"]:
            raise Forbidden("removed")
        scope = Scope.project(project_id)
        return (await self._writes.run(request, scope, remove_project, request.caller.actor, project_id)).response()

    async def _read_project_id(self, request: PermissionRequest) -> str:
        data = request.required_data()
        project_id = await self._projects.read_project_id(data.get("id"))
        request.warn_unknown(data, FIELDS)
        return project_id

    async def _authorize(self, request: PermissionRequest, project_id: str, operation: Operation) -> Row:
        rights = await self._authorizer.caller_rights(request.caller)
        return await self._projects.require(rights, project_id, operation)

    async def _require_user(self, request: PermissionRequest, name: str) -> TargetUser:
        user = await self._accounts.find(request.caller.actor, name)
        if user is None or user.disabled:
            raise NotFound("user not found")
        require_second_factor(user, ("user",))
        return user


def require_second_factor(user: TargetUser, path: FieldPath) -> None:
    """Raises FieldError. Codes by e-mail do not count (§4.6)."""
    if not set(user.second_factors) - {"email"}:
        raise FieldError(path, "has no second factor (codes by e-mail do not count)", status=409)


async def _publish(
    tx: Transaction,
    actor: AuditActor,
    project_id: str,
    title: str,
    author: str,
    admins: list[str],
    max_projects: int | None,
    max_removed: int | None,
) -> Row:
    await require_author_quota(tx, author, max_projects, max_removed)
    return await create_project(tx, actor, project_id, {"title": title}, author, admins)


async def _save(tx: Transaction, caller: Caller, project_id: str, changes: dict[str, Any]) -> Row:
    async with delegated_write(tx, caller, project_id, referenced_applications(changes)):
        return await save_project(tx, caller.actor, project_id, changes)
