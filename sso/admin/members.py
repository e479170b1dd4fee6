"""/api/admin/projects/{project_id}/members: the users with roles in a project."""

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
    list_response,
    page_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.admin.user_logins import read_logins
from sso.core.errors import ApiError, NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.membership import member_role_names
from sso.perm.operations.members import MemberOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.compilation import read_application
from sso.perm.stores.memberships import read_member, read_members_after
from sso.perm.stores.projects import resolve_project_id
from sso.perm.stores.roles import describe_roles
from sso.perm.visibility import Visibility


class MemberResource:
    def __init__(self, database: Database, members: MemberOperations, visibility: Visibility) -> None:
        self._database = database
        self._members = members
        self._access = RecordAccess(visibility, "project", Operation.MEMBERSHIP_GET, AdminRight.VIEW_PROJECTS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        """The members in the order of their ids. Callers who see users get logins too."""
        query: ListQuery = request.query
        project_id = path_project_id(request)
        await self._access.require(request, project_id)
        members = await read_members_after(self._database, project_id, query.after, query.limit + 1)
        logins = await read_logins(request, self._database, [member["user_id"] for member in members])
        if logins is not None:
            members = [member | {"login": logins.get(member["user_id"], "")} for member in members]
        return page_response(members, query.limit, lambda member: str(member["user_id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        project_id = path_project_id(request)
        await self._access.require(request, project_id)
        return record_response(await _read(self._database, project_id, path_user_id(request)))

    async def roles(self, request: AdminRequest) -> AdminResponse:
        """The roles that members of a project can have, at the project or at one of its resources."""
        await self._access.require(request, path_project_id(request))
        central = await read_application(self._database, CENTRAL_APPLICATION_ID)
        assert central is not None
        names = member_role_names(central)
        return list_response(await describe_roles(self._database, CENTRAL_APPLICATION_ID, names))

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Adds a user to the project, named by `user_id` or by `login`."""
        body: NewMember = request.body
        project_id = path_project_id(request)
        if bool(body.user_id) == bool(body.login):
            raise ApiError("user_id, login: exactly one of them is required")
        if body.user_id and not is_user_id(body.user_id):
            raise FieldError(("user_id",), "must be a user id")
        async with self._access.hiding(request, project_id):
            user_id = body.user_id or await self._members.find_user_id(
                request.caller.permissions, await self._resolve(project_id), body.login
            )
            return await self._create(request, project_id, user_id)

    async def _create(self, request: AdminRequest, project_id: str, user_id: str) -> AdminResponse:
        body: NewMember = request.body

        async def refuse_existing(tx: Transaction) -> None:
            if await read_member(tx, project_id, user_id) is not None:
                raise FieldError(("login" if body.login else "user_id",), "is a member of the project", status=409)

        async def create(context: ManagementContext) -> OperationResult[None]:
            return await self._members.save_member(context, await self._resolve(project_id), user_id, body.roles)

        async def read(runner: Runner, _result: None) -> JsonRecord:
            return await _read(runner, project_id, user_id)

        return await create_record(request, self._database, create, read, precondition=refuse_existing)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: MemberChanges = request.body
        return await self._write(request, body.roles)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        return await self._write(request, None)

    async def _write(self, request: AdminRequest, roles: JsonRecord | None) -> AdminResponse:
        project_id, user_id = path_project_id(request), path_user_id(request)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, project_id, user_id)

        async def save(context: ManagementContext) -> OperationResult[None]:
            return await self._members.save_member(context, await self._resolve(project_id), user_id, roles)

        async with self._access.hiding(request, project_id):
            return await change_record(request, self._database, save, read, deleted=roles is None)

    async def _resolve(self, project_id: str) -> str:
        return await resolve_project_id(self._database, project_id)


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
        permission_route(
            "GET", "/projects/<project_id>/roles", view, members.roles, summary="List the roles of members of a project"
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
            fixed_fields={"user_id": "user_id", "login": ""},
        ),
        permission_route("DELETE", one, manage, members.delete, DeleteQuery),
    )
