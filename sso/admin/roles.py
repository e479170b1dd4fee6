"""/api/admin/roles: lists, creates, changes and deletes roles of applications."""

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
)
from sso.admin.permission_bodies import NewRole, RoleChanges
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
    read_pair_cursor,
    record_response,
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
from sso.perm.stores.record_pages import find_roles
from sso.perm.stores.roles import read_role, role_json
from sso.perm.visibility import Visibility


class RoleQuery(SearchQuery):
    application_id: ApplicationId | None = None


class RoleResource:
    def __init__(self, database: Database, roles: RoleOperations, visibility: Visibility) -> None:
        self._database = database
        self._roles = roles
        self._access = RecordAccess(visibility, "application", Operation.ROLE_LIST, AdminRight.VIEW_APPLICATIONS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: RoleQuery = request.query
        visible = await self._access.visible_at_application(request, query.application_id)
        after_id, after_name = read_pair_cursor(query.after)
        after = read_number_cursor(after_id, MAX_APPLICATION_ID), after_name
        rows = await find_roles(self._database, page_query(query, visible), after, query.application_id)
        records = [role_record(row["application_id"], RoleRecord(**row["role"])) for row in rows]
        return page_response(records, query.limit, lambda record: f"{record['application_id']}/{record['name']}")

    async def get(self, request: AdminRequest) -> AdminResponse:
        application_id = path_application_id(request)
        await self._access.require(request, application_id)
        return record_response(await _read(self._database, application_id, request.path["name"]))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewRole = request.body

        async def refuse_existing(tx: Transaction) -> None:
            if await read_role(tx, body.application_id, body.name) is not None:
                raise FieldError(("name",), "the application has a role with this name", status=409)

        async def read(runner: Runner, role: RoleRecord) -> JsonRecord:
            return await _read(runner, body.application_id, role.name)

        async with self._access.hiding(request, body.application_id):
            operate = partial(self._save, application_id=body.application_id, data=body.given("application_id"))
            return await create_record(request, self._database, operate, read, precondition=refuse_existing)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: RoleChanges = request.body
        data = {"name": _require_segment(request.path["name"]), **body.given()}
        application_id = path_application_id(request)
        return await self._write(request, partial(self._save, application_id=application_id, data=data))

    async def delete(self, request: AdminRequest) -> AdminResponse:
        application_id, name = path_application_id(request), _require_segment(request.path["name"])
        operate = partial(self._roles.delete, application_id=application_id, name=name)
        return await self._write(request, operate, deleted=True)

    async def _save(
        self, context: ManagementContext, application_id: int, data: JsonRecord
    ) -> OperationResult[RoleRecord]:
        return await self._roles.save(context, application_id, await self._roles.parse(context, data))

    async def _write(self, request: AdminRequest, operate: Operate[Any], *, deleted: bool = False) -> AdminResponse:
        application_id, name = path_application_id(request), request.path["name"]

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, application_id, name)

        async with self._access.hiding(request, application_id):
            return await change_record(request, self._database, operate, read, deleted=deleted)


def _require_segment(name: str) -> str:
    if not is_segment(name):
        raise NotFound("role not found")
    return name


async def _read(runner: Runner, application_id: int, name: str) -> JsonRecord:
    role = await read_role(runner, application_id, _require_segment(name))
    if role is None:
        raise NotFound("role not found")
    return role_record(application_id, role)


def role_record(application_id: int, role: RoleRecord) -> JsonRecord:
    return {"application_id": application_id, **role_json(role)}


def role_routes(roles: RoleResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_APPLICATIONS, AdminRight.MANAGE_APPLICATIONS
    one = "/roles/<application_id>/<name>"
    return (
        permission_route("GET", "/roles", view, roles.list, RoleQuery),
        permission_route(
            "POST",
            "/roles",
            manage,
            roles.create,
            WriteQuery,
            NewRole,
            example={"application_id": 10, "name": "player", "meta": {"private_data": {"play": {"value": True}}}},
        ),
        permission_route("GET", one, view, roles.get),
        permission_route(
            "PATCH",
            one,
            manage,
            roles.change,
            WriteQuery,
            RoleChanges,
            example={"condition": {"tag": "player"}},
            fixed_fields={"application_id": "application_id", "name": "name"},
        ),
        permission_route("DELETE", one, manage, roles.delete, DeleteQuery),
    )
