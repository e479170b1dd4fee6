"""/api/admin/applications: lists, creates, changes and removes applications."""

from functools import partial
from typing import Literal

from sso.admin.answers.permissions import APPLICATION
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import RecordAccess, path_application_id
from sso.admin.permission_bodies import ApplicationChanges, NewApplication
from sso.admin.permission_resource import PermissionResource, ReadRecord, permission_kind, require_root_to_choose
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
from sso.perm.input.application import read_application_fields
from sso.perm.operations.applications import ApplicationOperations
from sso.perm.stores.applications import read_application_row
from sso.perm.stores.record_lists import application_page
from sso.perm.visibility import Visibility, Visible
from sso.web.request_model import QueryFlag

FOR_FULL_ACCESS = ("settings", "service_meta")  # the other fields are for everybody with a role at the application


class ApplicationQuery(SortedQuery):
    sort: Literal["name", "project_id"] | None = None  # without it: the id
    project_id: str | None = None
    removed: QueryFlag = False  # list removed applications instead of the others


class ApplicationResource(PermissionResource[int]):
    kind = permission_kind(
        "application",
        "/applications",
        "/applications/<application_id>",
        AdminRight.VIEW_APPLICATIONS,
        AdminRight.MANAGE_APPLICATIONS,
        NewApplication,
        {"name": "Shop", "description": "Items of all games"},
        ApplicationChanges,
        {"description": "Items and skins"},
        {"application_id": "application_id", "removed": ""},
        ApplicationQuery,
        record=APPLICATION,
        answers={"delete": AnswerShape(APPLICATION)},
    )

    def __init__(self, database: Database, applications: ApplicationOperations, visibility: Visibility) -> None:
        right = AdminRight.VIEW_APPLICATIONS
        super().__init__(database, RecordAccess(visibility, "application", Operation.APPLICATION_GET, right))
        self._applications = applications

    def key(self, request: AdminRequest) -> int:
        return path_application_id(request)

    def visible_by(self, key: int) -> int:
        return key

    async def find(self, runner: Runner, key: int) -> JsonRecord | None:
        row = await read_application_row(runner, key)
        return None if row is None else application_record(row, full=True)

    async def reader(self, request: AdminRequest, key: int) -> ReadRecord:
        read, full = await super().reader(request, key), key in await self._fully_visible(request)

        async def read_visible(runner: Runner) -> JsonRecord:
            record = await read(runner)
            return {name: value for name, value in record.items() if full or name not in FOR_FULL_ACCESS}

        return read_visible

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: ApplicationQuery = request.query
        visible = await self.access.visible_in_project(request, query.project_id)
        page = await application_page(
            self.database, visible, query.page, project_id=query.project_id, removed=query.removed
        )
        full = await self._fully_visible(request)
        return sorted_response(page, lambda row: application_record(row, full=row["application_id"] in full))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewApplication = request.body
        require_root_to_choose(request, "application_id")
        fields, warnings = read_application_fields(body.given("application_id"))
        create = partial(self._applications.create, fields=fields, application_id=body.application_id)
        return await self.create_record(request, create, lambda row: int(row["application_id"]), warnings)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: ApplicationChanges = request.body
        changes, warnings = read_application_fields(body.given())
        change = partial(self._applications.change, application_id=self.key(request), changes=changes)
        return await self.change_record(request, change, warnings)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Marks the application as removed: nobody has permissions there any more."""
        return await self.change_record(request, partial(self._applications.remove, application_id=self.key(request)))

    async def restore(self, request: AdminRequest) -> AdminResponse:
        """Restores a removed application, with the permissions that it gave. Needs the role root."""
        return await self.change_record(request, partial(self._applications.restore, application_id=self.key(request)))

    def routes(self) -> tuple[AdminRoute, ...]:
        path, summary = f"{self.kind.one}/restore", "Restore a removed application"
        answer = AnswerShape(APPLICATION)
        restore = AdminRoute("POST", path, self.kind.manage, self.restore, DeleteQuery, answer=answer, summary=summary)
        return (*super().routes(), restore)

    async def _fully_visible(self, request: AdminRequest) -> Visible:
        caller = request.caller.permissions
        return await self.access.visibility.applications(caller, Operation.APPLICATION_GET_FULL)


def application_record(row: Row, *, full: bool) -> JsonRecord:
    """The fields of ``sso apply``; without ``full``, those that everybody with a role at the application may see."""
    names = ("application_id", "name", "description", "project_id", *(FOR_FULL_ACCESS if full else ()))
    return {**{name: row[name] for name in names}, "removed": row["removed"]}
