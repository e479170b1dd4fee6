"""/api/admin/projects: lists, creates, changes and removes projects."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal

from sso.admin.answers.permissions import PROJECT
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import RecordAccess, path_project_id
from sso.admin.permission_bodies import NewProject, ProjectChanges
from sso.admin.permission_resource import PermissionResource, permission_kind
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    JsonRecord,
    SortedQuery,
    sorted_response,
)
from sso.admin.rights import AdminRight
from sso.db.database import Database
from sso.db.transaction import Row, Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.input.names import project_id_from_title
from sso.perm.input.project import NamedProjectFields, read_project_fields
from sso.perm.operations.projects import ProjectOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.projects import managed_json, read_project, resolve_project_id
from sso.perm.stores.record_lists import count_project_records, project_page
from sso.perm.visibility import Visibility
from sso.web.request_model import QueryFlag, at_most

LISTS = ("allow", "disallow")


class ProjectQuery(SortedQuery):
    sort: Literal["title", "created"] | None = None  # without it: the id
    removed: QueryFlag = False  # list removed projects instead of the others
    name: Annotated[str, at_most(64)] | None = None  # only the project with this id or alias
    counts: QueryFlag = False  # add the numbers of applications, groups and members


class ProjectResource(PermissionResource[str]):
    kind = permission_kind(
        "project",
        "/projects",
        "/projects/<project_id>",
        AdminRight.VIEW_PROJECTS,
        AdminRight.MANAGE_PROJECTS,
        NewProject,
        {"title": "Space Game", "admins": ["ann@example.com"]},
        ProjectChanges,
        {"description": "Ships and planets"},
        {"id": "project_id", **dict.fromkeys(("tags", "author", "created", "removed"), "")},
        ProjectQuery,
        record=PROJECT,
        answers={"delete": AnswerShape(PROJECT)},
    )

    def __init__(self, database: Database, projects: ProjectOperations, visibility: Visibility) -> None:
        right = AdminRight.VIEW_PROJECTS
        super().__init__(database, RecordAccess(visibility, "project", Operation.PROJECT_GET, right))
        self._projects = projects

    def key(self, request: AdminRequest) -> str:
        return path_project_id(request)

    def visible_by(self, key: str) -> str:
        return key

    async def find(self, runner: Runner, key: str) -> JsonRecord | None:
        row = await read_project(runner, key)
        return None if row is None else project_record(row)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: ProjectQuery = request.query
        visible = await self.access.visible(request)
        project_id = None if query.name is None else await resolve_project_id(self.database, query.name)
        page = await project_page(self.database, visible, query.page, project_id=project_id, removed=query.removed)
        ids = [row["id"] for row in page.records]
        counts = await count_project_records(self.database, ids) if query.counts else {}
        return sorted_response(page, lambda row: project_record(row) | counts.get(row["id"], {}))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewProject = request.body
        project_id = project_id_from_title(body.title, ("title",))
        fields, warnings = read_project_fields(project_id, body.given("admins"), model=NamedProjectFields)
        create = partial(self._projects.create, project_id=project_id, fields=fields, admins=body.admins)
        return await self.create_record(request, create, lambda project: str(project["id"]), warnings)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: ProjectChanges = request.body

        async def change(context: ManagementContext, project_id: str) -> OperationResult[Row]:
            changes, warnings = read_project_fields(project_id, body.given(*LISTS), model=NamedProjectFields)
            context.warnings.extend(warnings)
            lists = {name: getattr(body, name) for name in LISTS if name in body.model_fields_set}
            return await self._projects.change(context, project_id, changes, lists)

        return await self._change(request, change)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Marks the project as removed: its members and groups lose the rights that it gives."""
        return await self._change(request, self._projects.remove)

    async def restore(self, request: AdminRequest) -> AdminResponse:
        """Restores a removed project, with the rights that it gives. Needs the role root."""
        return await self._change(request, self._projects.restore)

    async def _change(
        self, request: AdminRequest, operate: Callable[[ManagementContext, str], Awaitable[OperationResult[Any]]]
    ) -> AdminResponse:
        async def change(context: ManagementContext) -> OperationResult[Any]:
            return await operate(context, await resolve_project_id(self.database, self.key(request)))

        return await self.change_record(request, change)

    def routes(self) -> tuple[AdminRoute, ...]:
        path, summary = f"{self.kind.one}/restore", "Restore a removed project"
        answer = AnswerShape(PROJECT)
        restore = AdminRoute("POST", path, self.kind.manage, self.restore, DeleteQuery, answer=answer, summary=summary)
        return (*super().routes(), restore)


def project_record(row: Row) -> JsonRecord:
    return managed_json(row) | {name: list(row[name]) for name in LISTS}
