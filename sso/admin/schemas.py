"""/api/admin/schemas: lists and changes schemas of applications."""

from sso.admin.permission_access import (
    RecordAccess,
    change_record,
    page_query,
    path_application_id,
    permission_route,
)
from sso.admin.permission_bodies import SchemaChanges
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
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
from sso.db.transaction import Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.operations.schemas import SchemaOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.applications import read_application_row
from sso.perm.stores.record_pages import find_active_applications
from sso.perm.stores.roles import read_roles
from sso.perm.stores.schemas import schema_json
from sso.perm.visibility import Visibility


class SchemaResource:
    def __init__(self, database: Database, schemas: SchemaOperations, visibility: Visibility) -> None:
        self._database = database
        self._schemas = schemas
        self._access = RecordAccess(visibility, "application", Operation.SCHEMA_READ, AdminRight.VIEW_APPLICATIONS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Lists schemas without roles, which have their own list."""
        query: SearchQuery = request.query
        visible = await self._access.visible(request)
        after = read_number_cursor(query.after, MAX_APPLICATION_ID)
        rows = await find_active_applications(self._database, page_query(query, visible), after)
        records = [schema_json(row, {}) for row in rows]
        for record in records:
            del record["roles"]
        return page_response(records, query.limit, lambda record: str(record["application_id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        application_id = path_application_id(request)
        await self._access.require(request, application_id)
        return record_response(await _read(self._database, application_id))

    async def change(self, request: AdminRequest) -> AdminResponse:
        """Replaces the sections of the body, and saves its roles. Other sections and roles stay."""
        body: SchemaChanges = request.body
        application_id = path_application_id(request)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, application_id)

        async def save(context: ManagementContext) -> OperationResult[JsonRecord]:
            changes, roles = await self._schemas.parse(context, body.given())
            return await self._schemas.save(context, application_id, changes, roles)

        async with self._access.hiding(request, application_id):
            return await change_record(request, self._database, save, read)


async def _read(runner: Runner, application_id: int) -> JsonRecord:
    row = await read_application_row(runner, application_id)
    if row is None:
        raise NotFound("application not found")
    return schema_json(row, await read_roles(runner, application_id))


def schema_routes(schemas: SchemaResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_APPLICATIONS, AdminRight.MANAGE_APPLICATIONS
    one = "/schemas/<application_id>"
    return (
        permission_route("GET", "/schemas", view, schemas.list, SearchQuery),
        permission_route("GET", one, view, schemas.get),
        permission_route(
            "PATCH",
            one,
            manage,
            schemas.change,
            WriteQuery,
            SchemaChanges,
            example={"private_data": {"play": {"value": False, "protected": False, "description": "May play."}}},
            fixed_fields={"application_id": "application_id", "version": "", "updated_at": ""},
        ),
    )
