"""/api/admin/applications: lists, creates, changes and removes applications."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sso.admin.permission_access import (
    Operate,
    RecordAccess,
    change_record,
    create_record,
    page_query,
    path_application_id,
    permission_route,
    require_root_to_choose,
)
from sso.admin.permission_bodies import ApplicationChanges, NewApplication
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    JsonRecord,
    SearchQuery,
    WriteQuery,
    page_response,
    read_number_cursor,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.transaction import Row, Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.input.application import read_application_fields
from sso.perm.operations.applications import ApplicationOperations
from sso.perm.stores.applications import read_application_row
from sso.perm.stores.record_pages import find_applications
from sso.perm.visibility import Visibility
from sso.web.request_model import QueryFlag


class ApplicationQuery(SearchQuery):
    project_id: str | None = None
    removed: QueryFlag = False  # list removed applications instead of the others


class ApplicationResource:
    def __init__(self, database: Database, applications: ApplicationOperations, visibility: Visibility) -> None:
        self._database = database
        self._applications = applications
        self._visibility = visibility
        self._access = RecordAccess(visibility, "application", Operation.APPLICATION_GET, AdminRight.VIEW_APPLICATIONS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: ApplicationQuery = request.query
        visible = await self._access.visible_in_project(request, query.project_id)
        after = read_number_cursor(query.after, MAX_APPLICATION_ID)
        rows = await find_applications(
            self._database, page_query(query, visible), after, removed=query.removed, project_id=query.project_id
        )
        full = await self._visibility.applications(request.caller.permissions, Operation.APPLICATION_GET_FULL)
        records = [application_record(row, full=row["application_id"] in full) for row in rows]
        return page_response(records, query.limit, lambda record: str(record["application_id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        application_id = path_application_id(request)
        await self._access.require(request, application_id)
        full = await self._sees_all_fields(request, application_id)
        return record_response(await _read(self._database, application_id, full=full))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewApplication = request.body
        require_root_to_choose(request, "application_id")

        fields, warnings = read_application_fields(body.given("application_id"))

        create = partial(self._applications.create, fields=fields, application_id=body.application_id)

        async def read(runner: Runner, row: Row) -> JsonRecord:
            full = await self._sees_all_fields(request, row["application_id"])
            return await _read(runner, row["application_id"], full=full)

        return await create_record(request, self._database, create, read, warnings)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: ApplicationChanges = request.body
        application_id = path_application_id(request)
        changes, warnings = read_application_fields(body.given())
        operate = partial(self._applications.change, application_id=application_id, changes=changes)
        return await self._write(request, operate, warnings)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Marks the application as removed: nobody has permissions there any more."""
        application_id = path_application_id(request)
        return await self._write(request, partial(self._applications.remove, application_id=application_id))

    async def _write(self, request: AdminRequest, operate: Operate[Any], warnings: Sequence[str] = ()) -> AdminResponse:
        application_id = path_application_id(request)
        full = await self._sees_all_fields(request, application_id)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, application_id, full=full)

        async with self._access.hiding(request, application_id):
            return await change_record(request, self._database, operate, read, warnings)

    async def _sees_all_fields(self, request: AdminRequest, application_id: int) -> bool:
        caller = request.caller.permissions
        return application_id in await self._visibility.applications(caller, Operation.APPLICATION_GET_FULL)


async def _read(runner: Runner, application_id: int, *, full: bool) -> JsonRecord:
    row = await read_application_row(runner, application_id)
    if row is None:
        raise NotFound("application not found")
    return application_record(row, full=full)


def application_record(row: Row, *, full: bool) -> JsonRecord:
    """The fields of ``sso apply``; without ``full``, those that everybody with a role at the application may see."""
    names = ("application_id", "name", "description", "project_id", *(("settings", "service_meta") if full else ()))
    return {**{name: row[name] for name in names}, "removed": row["removed"]}


def application_routes(applications: ApplicationResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_APPLICATIONS, AdminRight.MANAGE_APPLICATIONS
    one = "/applications/<application_id>"
    return (
        permission_route("GET", "/applications", view, applications.list, ApplicationQuery),
        permission_route(
            "POST",
            "/applications",
            manage,
            applications.create,
            WriteQuery,
            NewApplication,
            example={"name": "Shop", "description": "Items of all games"},
        ),
        permission_route("GET", one, view, applications.get),
        permission_route(
            "PATCH",
            one,
            manage,
            applications.change,
            WriteQuery,
            ApplicationChanges,
            example={"description": "Items and skins"},
            fixed_fields={"application_id": "application_id", "removed": ""},
        ),
        permission_route("DELETE", one, manage, applications.delete, DeleteQuery),
    )
