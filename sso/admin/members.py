"""/api/admin/projects/{project_id}/members: the users with roles in a project."""

from functools import partial

from sso.admin.answers.permissions import MemberJson, MemberRoleJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import RecordAccess, path_project_id, path_user_id, permission_route
from sso.admin.permission_bodies import MemberChanges, NewMember
from sso.admin.permission_resource import PermissionResource, permission_kind
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    list_response,
    page_response,
)
from sso.admin.rights import AdminRight
from sso.admin.user_logins import read_logins
from sso.core.errors import ApiError
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
from sso.perm.stores.roles import read_roles
from sso.perm.visibility import Visibility


class MemberResource(PermissionResource[tuple[str, str]]):
    kind = permission_kind(
        "member",
        "/projects/<project_id>/members",
        "/projects/<project_id>/members/<user_id>",
        AdminRight.VIEW_PROJECTS,
        AdminRight.MANAGE_PROJECTS,
        NewMember,
        {"user_id": "1001", "roles": {"project": ["viewer"]}},
        MemberChanges,
        {"roles": {"project": [{"name": "viewer", "expired": 4102444800}]}},
        {"user_id": "user_id", "login": ""},
        ListQuery,
        noun="project member",
        record=MemberJson,
    )

    def __init__(self, database: Database, members: MemberOperations, visibility: Visibility) -> None:
        right = AdminRight.VIEW_PROJECTS
        super().__init__(database, RecordAccess(visibility, "project", Operation.MEMBERSHIP_GET, right))
        self._members = members

    def key(self, request: AdminRequest) -> tuple[str, str]:
        return path_project_id(request), path_user_id(request)

    def visible_by(self, key: tuple[str, str]) -> str:
        return key[0]

    async def find(self, runner: Runner, key: tuple[str, str]) -> JsonRecord | None:
        return await read_member(runner, *key)

    async def list(self, request: AdminRequest) -> AdminResponse:
        """The members in the order of their ids. Callers who see users get logins too."""
        query: ListQuery = request.query
        project_id = path_project_id(request)
        await self.access.require(request, project_id)
        members = await read_members_after(self.database, project_id, query.after, query.limit + 1)
        logins = await read_logins(request, self.database, [member["user_id"] for member in members])
        if logins is not None:
            members = [member | {"login": logins.get(member["user_id"], "")} for member in members]
        return page_response(members, query.limit, lambda member: str(member["user_id"]))

    async def roles(self, request: AdminRequest) -> AdminResponse:
        """The roles that members of a project can have, at the project or at one of its resources."""
        await self.access.require(request, path_project_id(request))
        central = await read_application(self.database, CENTRAL_APPLICATION_ID)
        assert central is not None
        names, roles = member_role_names(central), await read_roles(self.database, CENTRAL_APPLICATION_ID)
        shown = [{"name": name, "description": role.description} for name, role in roles.items() if name in names]
        return list_response(shown)

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Adds a user to the project, named by `user_id` or by `login`."""
        body: NewMember = request.body
        if bool(body.user_id) == bool(body.login):
            raise ApiError("user_id, login: exactly one of them is required")
        if body.user_id and not is_user_id(body.user_id):
            raise FieldError(("user_id",), "must be a user id")
        # The path may have an alias, or another form of the id.
        project_id = await resolve_project_id(self.database, path_project_id(request))
        async with self.access.hiding(request, project_id):
            user_id = body.user_id or await self._members.find_user_id(
                request.caller.permissions, project_id, body.login
            )
            return await self._create(request, project_id, user_id)

    async def _create(self, request: AdminRequest, project_id: str, user_id: str) -> AdminResponse:
        body: NewMember = request.body

        async def refuse_existing(tx: Transaction) -> None:
            if await read_member(tx, project_id, user_id) is not None:
                raise FieldError(("login" if body.login else "user_id",), "is a member of the project", status=409)

        save = partial(self._save, project_id=project_id, user_id=user_id, roles=body.roles)
        return await self.create_record(
            request, save, lambda _result: (project_id, user_id), precondition=refuse_existing
        )

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: MemberChanges = request.body
        project_id, user_id = self.key(request)
        save = partial(self._save, project_id=project_id, user_id=user_id, roles=body.roles)
        return await self.change_record(request, save)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        project_id, user_id = self.key(request)
        save = partial(self._save, project_id=project_id, user_id=user_id, roles=None)
        return await self.change_record(request, save, deleted=True)

    async def _save(
        self, context: ManagementContext, project_id: str, user_id: str, roles: JsonRecord | None
    ) -> OperationResult[None]:
        """Without roles, the user is no longer a member."""
        return await self._members.save_member(context, project_id, user_id, roles)

    def routes(self) -> tuple[AdminRoute, ...]:
        path, summary = "/projects/<project_id>/roles", "List the roles of members of a project"
        of_members, of_one = super().routes()[:2], super().routes()[2:]
        answer = AnswerShape(MemberRoleJson, is_list=True)
        roles = permission_route("GET", path, self.kind.view, self.roles, answer=answer, summary=summary)
        return (*of_members, roles, *of_one)
