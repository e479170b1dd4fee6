"""/api/admin/schemas: lists and changes schemas of applications."""

from sso.admin.answers.permissions import SCHEMA
from sso.admin.permission_access import RecordAccess, path_application_id
from sso.admin.permission_bodies import SchemaChanges
from sso.admin.permission_resource import PermissionResource, permission_kind
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    JsonRecord,
    SearchQuery,
    page_response,
    read_number_cursor,
)
from sso.admin.rights import AdminRight
from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.transaction import Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.operations.schemas import SchemaOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.applications import read_application_row
from sso.perm.stores.record_lists import schema_page
from sso.perm.stores.roles import read_roles
from sso.perm.stores.schemas import schema_json
from sso.perm.visibility import Visibility


class SchemaResource(PermissionResource[int]):
    kind = permission_kind(
        "application",
        "/schemas",
        "/schemas/<application_id>",
        AdminRight.VIEW_APPLICATIONS,
        AdminRight.MANAGE_APPLICATIONS,
        changes=SchemaChanges,
        change_example={"private_data": {"play": {"value": False, "protected": False, "description": "May play."}}},
        fixed_fields={"application_id": "application_id", "version": "", "updated_at": ""},
        noun="schema",
        record=SCHEMA,
    )

    def __init__(self, database: Database, schemas: SchemaOperations, visibility: Visibility) -> None:
        right = AdminRight.VIEW_APPLICATIONS
        super().__init__(database, RecordAccess(visibility, "application", Operation.SCHEMA_READ, right))
        self._schemas = schemas

    def key(self, request: AdminRequest) -> int:
        return path_application_id(request)

    def visible_by(self, key: int) -> int:
        return key

    async def find(self, runner: Runner, key: int) -> JsonRecord | None:
        row = await read_application_row(runner, key)
        return None if row is None else schema_json(row, await read_roles(runner, key))

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Lists schemas without roles, which have their own list."""
        query: SearchQuery = request.query
        visible = await self.access.visible(request)
        after = read_number_cursor(query.after, MAX_APPLICATION_ID)
        rows = await schema_page(self.database, visible, query.search, after, query.limit + 1)
        records = [schema_json(row, {}) for row in rows]
        for record in records:
            del record["roles"]
        return page_response(records, query.limit, lambda record: str(record["application_id"]))

    async def change(self, request: AdminRequest) -> AdminResponse:
        """Replaces the sections of the body, and saves its roles. Other sections and roles stay."""
        body: SchemaChanges = request.body
        application_id = self.key(request)

        async def save(context: ManagementContext) -> OperationResult[JsonRecord]:
            changes, roles = await self._schemas.parse(context, body.given())
            return await self._schemas.save(context, application_id, changes, roles)

        return await self.change_record(request, save)
