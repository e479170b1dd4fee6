"""/api/admin/projects/{project_id}/members: the users with roles in a project."""

from sso.admin.errors import Conflict
from sso.admin.permission_access import (
    RecordAccess,
    change_record,
    create_record,
    path_project_id,
    path_user_id,
    permission_route,
)
from sso.admin.permission_bodies import MemberChanges, NewMember
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    JsonRecord,
    ListQuery,
    WriteQuery,
    page_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.endpoints.managed_projects import ManagedProjectEndpoint
from sso.perm.engine.operations import Operation
from sso.perm.errors import InvalidInput
from sso.perm.stores.memberships import read_member, read_members_after
from sso.perm.visibility import Visibility

_LOGINS = Statement("SELECT user_id, login FROM users WHERE user_id = ANY(CAST(:ids AS text[]))")


class MemberResource:
    def __init__(self, database: Database, endpoint: ManagedProjectEndpoint, visibility: Visibility) -> None:
        self._database = database
        self._endpoint = endpoint
        self._access = RecordAccess(visibility, "project", Operation.MEMBERSHIP_GET, AdminRight.VIEW_PROJECTS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Lists the members. Callers who see users get logins too."""
        query: ListQuery = request.query
        project_id = path_project_id(request)
        await self._access.require(request, project_id)
        members = await read_members_after(self._database, project_id, query.after, query.limit + 1)
        if AdminRight.VIEW_USERS in request.caller.rights:
            rows = await self._database.rows(_LOGINS, ids=[member["user_id"] for member in members])
            logins = {row["user_id"]: row["login"] for row in rows}
            members = [{**member, "login": logins.get(member["user_id"])} for member in members]
        return page_response(members, query.limit, lambda member: str(member["user_id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        project_id = path_project_id(request)
        await self._access.require(request, project_id)
        return record_response(await _read(self._database, project_id, path_user_id(request)))

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewMember = request.body
        project_id = path_project_id(request)
        if not is_user_id(body.user_id):
            raise InvalidInput("user_id: must be a user id")

        async def refuse_existing(tx: Transaction) -> None:
            if await read_member(tx, project_id, body.user_id) is not None:
                raise Conflict("user_id: is a member of the project")

        async def read(runner: Runner, _data: JsonRecord) -> JsonRecord:
            return await _read(runner, project_id, body.user_id)

        fields = {"data": {"id": project_id, **body.given()}}
        async with self._access.hiding(request, project_id):
            return await create_record(
                request, self._database, self._endpoint.save_member, fields, read, refuse_existing
            )

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: MemberChanges = request.body
        return await self._write(request, body.given())

    async def delete(self, request: AdminRequest) -> AdminResponse:
        return await self._write(request, {}, deleted=True)

    async def _write(self, request: AdminRequest, fields: JsonRecord, *, deleted: bool = False) -> AdminResponse:
        project_id, user_id = path_project_id(request), path_user_id(request)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, project_id, user_id)

        fields = {"data": {"id": project_id, "user_id": user_id, **fields}}
        async with self._access.hiding(request, project_id):
            return await change_record(
                request, self._database, self._endpoint.save_member, fields, read, deleted=deleted
            )


async def _read(runner: Runner, project_id: str, user_id: str) -> JsonRecord:
    member = await read_member(runner, project_id, user_id)
    if member is None:
        raise NotFound("member not found")
    return member


def member_routes(members: MemberResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_PROJECTS, AdminRight.MANAGE_PROJECTS
    collection = "/projects/<project_id>/members"
    one = f"{collection}/<user_id>"
    return (
        permission_route("GET", collection, view, members.list, ListQuery),
        permission_route(
            "POST",
            collection,
            manage,
            members.create,
            WriteQuery,
            NewMember,
            example={"user_id": "1001", "roles": {"project": ["viewer"]}},
        ),
        permission_route("GET", one, view, members.get),
        permission_route(
            "PATCH",
            one,
            manage,
            members.change,
            WriteQuery,
            MemberChanges,
            example={"roles": {"project": [{"name": "viewer", "expired": 4102444800}]}},
        ),
        permission_route("DELETE", one, manage, members.delete, DeleteQuery),
    )
