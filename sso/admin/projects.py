"""/api/admin/projects: lists, creates, changes and removes projects."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from sso.admin.permission_access import (
    RecordAccess,
    change_record,
    create_record,
    page_query,
    path_project_id,
    permission_route,
)
from sso.admin.permission_bodies import NewProject, ProjectChanges
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    JsonRecord,
    SearchQuery,
    WriteQuery,
    page_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Row, Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.input.names import project_id_from_title
from sso.perm.input.project import read_project_fields
from sso.perm.operations.projects import ProjectOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.projects import project_json, read_project, resolve_project_id
from sso.perm.stores.record_pages import count_records, find_projects
from sso.perm.visibility import Visibility
from sso.web.request_model import QueryFlag, at_most

LISTS = ("allow", "disallow")


class ProjectQuery(SearchQuery):
    removed: QueryFlag = False  # list removed projects instead of the others
    name: Annotated[str, at_most(64)] | None = None  # only the project with this id or alias
    counts: QueryFlag = False  # add the numbers of applications, groups and members


class ProjectResource:
    def __init__(self, database: Database, projects: ProjectOperations, visibility: Visibility) -> None:
        self._database = database
        self._projects = projects
        self._access = RecordAccess(visibility, "project", Operation.PROJECT_GET, AdminRight.VIEW_PROJECTS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: ProjectQuery = request.query
        visible = await self._access.visible(request)
        project_id = None if query.name is None else await resolve_project_id(self._database, query.name)
        rows = await find_projects(
            self._database, page_query(query, visible), query.after, removed=query.removed, project_id=project_id
        )
        counts = await count_records(self._database, (row["id"] for row in rows)) if query.counts else {}
        records = [project_record(row) | counts.get(row["id"], {}) for row in rows]
        return page_response(records, query.limit, lambda record: str(record["id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        project_id = path_project_id(request)
        await self._access.require(request, project_id)
        return record_response(await _read(self._database, project_id))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewProject = request.body
        project_id = project_id_from_title(body.title, ("title",))
        fields, warnings = read_project_fields(project_id, body.given("admins"))

        create = partial(self._projects.create, project_id=project_id, fields=fields, admins=body.admins)

        async def read(runner: Runner, project: Row) -> JsonRecord:
            return await _read(runner, project["id"])

        return await create_record(request, self._database, create, read, warnings)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: ProjectChanges = request.body

        async def change(context: ManagementContext, project_id: str) -> OperationResult[Row]:
            changes, warnings = read_project_fields(project_id, body.given(*LISTS))
            context.warnings.extend(warnings)
            lists = {name: getattr(body, name) for name in LISTS if name in body.model_fields_set}
            return await self._projects.change(context, project_id, changes, lists)

        return await self._write(request, change)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Marks the project as removed: its members and groups lose the rights that it gives."""
        return await self._write(request, self._projects.remove)

    async def restore(self, request: AdminRequest) -> AdminResponse:
        """Restores a removed project, with the rights that it gives. Needs the role root."""
        return await self._write(request, self._projects.restore)

    async def _write(
        self,
        request: AdminRequest,
        operate: Callable[[ManagementContext, str], Awaitable[OperationResult[Any]]],
    ) -> AdminResponse:
        name = path_project_id(request)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, name)

        async def operate_on_project(context: ManagementContext) -> OperationResult[Any]:
            return await operate(context, await resolve_project_id(self._database, name))

        async with self._access.hiding(request, name):
            return await change_record(request, self._database, operate_on_project, read)


async def _read(runner: Runner, project_id: str) -> JsonRecord:
    row = await read_project(runner, project_id)
    if row is None:
        raise NotFound("project not found")
    return project_record(row)


def project_record(row: Row) -> JsonRecord:
    return project_json(row) | {name: list(row[name]) for name in LISTS}


def project_routes(projects: ProjectResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_PROJECTS, AdminRight.MANAGE_PROJECTS
    one = "/projects/<project_id>"
    return (
        permission_route("GET", "/projects", view, projects.list, ProjectQuery),
        permission_route(
            "POST",
            "/projects",
            manage,
            projects.create,
            WriteQuery,
            NewProject,
            example={"title": "Space Game", "admins": ["ann@example.com"]},
        ),
        permission_route("GET", one, view, projects.get),
        permission_route(
            "PATCH",
            one,
            manage,
            projects.change,
            WriteQuery,
            ProjectChanges,
            example={"description": "Ships and planets"},
            fixed_fields={"id": "project_id", **dict.fromkeys(("tags", "author", "created", "removed"), "")},
        ),
        permission_route("DELETE", one, manage, projects.delete, DeleteQuery),
        AdminRoute(
            "POST", f"{one}/restore", manage, projects.restore, DeleteQuery, summary="Restore a removed project"
        ),
    )
