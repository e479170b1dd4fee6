"""/api/admin/roles: lists, creates, changes and deletes roles of applications."""

from functools import partial

from sso.admin.answers.permissions import ROLE
from sso.admin.permission_access import RecordAccess, path_application_id
from sso.admin.permission_bodies import NewRole, RoleChanges
from sso.admin.permission_resource import PermissionResource, permission_kind
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    JsonRecord,
    SearchQuery,
    page_response,
    read_number_cursor,
    read_pair_cursor,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction
from sso.perm.engine.records import RoleRecord
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import is_segment
from sso.perm.input.field_types import ApplicationId
from sso.perm.operations.roles import RoleOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.record_lists import role_page
from sso.perm.stores.roles import read_role, role_json
from sso.perm.visibility import Visibility


class RoleQuery(SearchQuery):
    application_id: ApplicationId | None = None


class RoleResource(PermissionResource[tuple[int, str]]):
    kind = permission_kind(
        "role",
        "/roles",
        "/roles/<application_id>/<name>",
        AdminRight.VIEW_APPLICATIONS,
        AdminRight.MANAGE_APPLICATIONS,
        NewRole,
        {"application_id": 10, "name": "player", "meta": {"private_data": {"play": {"value": True}}}},
        RoleChanges,
        {"condition": {"tag": "player"}},
        {"application_id": "application_id", "name": "name"},
        RoleQuery,
        record=ROLE,
    )

    def __init__(self, database: Database, roles: RoleOperations, visibility: Visibility) -> None:
        right = AdminRight.VIEW_APPLICATIONS
        super().__init__(database, RecordAccess(visibility, "application", Operation.ROLE_LIST, right))
        self._roles = roles

    def key(self, request: AdminRequest) -> tuple[int, str]:
        application_id, name = path_application_id(request), request.path["name"]
        if not is_segment(name):
            raise NotFound("role not found")
        return application_id, name

    def visible_by(self, key: tuple[int, str]) -> int:
        return key[0]

    async def find(self, runner: Runner, key: tuple[int, str]) -> JsonRecord | None:
        role = await read_role(runner, *key)
        return None if role is None else role_record(key[0], role)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: RoleQuery = request.query
        visible = await self.access.visible_at_application(request, query.application_id)
        after_id, after_name = read_pair_cursor(query.after)
        after = read_number_cursor(after_id, MAX_APPLICATION_ID), after_name
        roles = await role_page(self.database, visible, query.search, after, query.limit + 1, query.application_id)
        records = [role_record(*role) for role in roles]
        return page_response(records, query.limit, lambda record: f"{record['application_id']}/{record['name']}")

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewRole = request.body
        application_id = body.application_id

        async def refuse_existing(tx: Transaction) -> None:
            if await read_role(tx, application_id, body.name) is not None:
                raise FieldError(("name",), "the application has a role with this name", status=409)

        data = body.given("application_id", "undo_of")
        save = partial(self._save, application_id=application_id, data=data, undo_of=body.undo_of)
        async with self.access.hiding(request, application_id):
            return await self.create_record(
                request, save, lambda role: (application_id, role.name), precondition=refuse_existing
            )

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: RoleChanges = request.body
        application_id, name = self.key(request)
        data = {"name": name, **body.given()}
        return await self.change_record(request, partial(self._save, application_id=application_id, data=data))

    async def delete(self, request: AdminRequest) -> AdminResponse:
        application_id, name = self.key(request)
        delete = partial(self._roles.delete, application_id=application_id, name=name)
        return await self.change_record(request, delete, deleted=True)

    async def _save(
        self, context: ManagementContext, application_id: int, data: JsonRecord, undo_of: int | None = None
    ) -> OperationResult[RoleRecord]:
        return await self._roles.save(context, application_id, await self._roles.parse(context, data), undo_of)


def role_record(application_id: int, role: RoleRecord) -> JsonRecord:
    return {"application_id": application_id, **role_json(role)}
