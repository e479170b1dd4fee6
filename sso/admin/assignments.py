"""Roles and own data of users at applications: /api/admin/users/{user_id}/permissions, and the holders of roles."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from msgspec.structs import replace

from sso.admin.answers.permissions import ASSIGNMENT, AssignmentsJson, RoleHolderJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import (
    RecordAccess,
    path_application_id,
    path_user_id,
    permission_route,
)
from sso.admin.permission_bodies import AssignedData, AssignmentChanges
from sso.admin.permission_resource import write_record
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    WriteQuery,
    etag,
    page_response,
    read_pair_cursor,
)
from sso.admin.rights import AdminRight
from sso.admin.user_details import EVERY_RULE, PermissionsQuery, UserDetails
from sso.admin.users import UserResource
from sso.core.errors import Forbidden, NotFound
from sso.db.transaction import Row, Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.input.options import read_user_data_options
from sso.perm.operations.user_data import SavedRecord, UserDataOperations, UserDataQuestion
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.assignments import find_holders, read_assignments_of
from sso.perm.stores.memberships import read_memberships_of
from sso.perm.stores.user_data import read_record, record_json
from sso.perm.visibility import Visibility
from sso.web.request_model import at_most

MAX_ASSIGNMENTS = 1000
EFFECTIVE_PERMISSIONS = AnswerShape(
    list[str] | dict[str, Any],
    {"explain": dict[str, Any], "record": ASSIGNMENT, "user_id": str, "expired": int},
)


class HolderQuery(ListQuery):
    role: Annotated[str, at_most(64)] = ""


class AssignmentResource:
    def __init__(
        self,
        users: UserResource,
        operations: UserDataOperations,
        details: UserDetails,
        visibility: Visibility,
    ) -> None:
        self._database = users.database
        self._users = users
        self._operations = operations
        self._details = details
        self._visibility = visibility
        self._access = RecordAccess(visibility, "application", Operation.APPLICATION_GET, AdminRight.VIEW_APPLICATIONS)

    async def get(self, request: AdminRequest) -> AdminResponse:
        """The effective permissions of a user at an application.

        Callers who see users also get the stored ``record``, which PATCH changes.
        """
        query: PermissionsQuery = request.query
        user_id = path_user_id(request)
        if request.caller.sees_users:
            response = await self._details.permissions(request)
            record = await _read(self._database, user_id, query.application_id)
            return replace(response, members={**response.members, "record": record}, headers={"ETag": etag(record)})
        given = {"explain": True if query.explain == EVERY_RULE else query.explain or None, "at": query.at}
        options, _ = read_user_data_options({name: value for name, value in given.items() if value is not None})
        question = UserDataQuestion(user_id, query.application_id, query.type, **options)
        caller = request.caller.permissions
        async with self._hiding(request, query.application_id):
            await self._visibility.require_sections(caller, query.application_id, "roles", "private_data")
            members = await self._operations.read(caller, question)
        record = await _read(self._database, user_id, query.application_id)
        return AdminResponse(members, headers={"ETag": etag(record)})

    async def change(self, request: AdminRequest) -> AdminResponse:
        """Replaces the roles, and the sections of the user's own data, that the body has."""
        body: AssignmentChanges = request.body
        user_id = path_user_id(request)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, user_id, body.application_id)

        async def save(context: ManagementContext) -> OperationResult[SavedRecord]:
            data = body.given("application_id", "expired", "data") | _sections(body.data)
            changes = await self._operations.parse(context, data, body.expired)
            return await self._operations.save(context, user_id, body.application_id, changes)

        async with self._hiding(request, body.application_id):
            response = await write_record(request, self._database, save, read)
        return await self._readable(request, response, user_id, body.application_id)

    async def _readable(
        self, request: AdminRequest, response: AdminResponse, user_id: str, application_id: int
    ) -> AdminResponse:
        """Leaves the sections of the record out that the caller may write, but not read."""
        caller = request.caller
        if caller.sees_users or caller.permissions.user_id == user_id or "data" not in response.members:
            return response
        sections = await self._visibility.sections(caller.permissions, application_id)
        readable = {"user_id", "application_id", *sections}
        record = {name: value for name, value in response.members["data"].items() if name in readable}
        return replace(response, members={**response.members, "data": record})

    async def holders(self, request: AdminRequest) -> AdminResponse:
        """The users to whom roles of the application are assigned, by role. Callers who see users get logins too."""
        query: HolderQuery = request.query
        application_id = path_application_id(request)
        async with self._hiding(request, application_id):
            await self._visibility.require_sections(request.caller.permissions, application_id, "roles")
        if not await self._visibility.exists("application", application_id):
            raise NotFound("application not found")
        after_name, after_user = read_pair_cursor(query.after)
        rows = await find_holders(self._database, application_id, query.role, after_name, after_user, query.limit + 1)
        with_login = request.caller.sees_users
        records = [_holder(row, with_login=with_login) for row in rows]
        return page_response(records, query.limit, lambda record: f"{record['role']}/{record['user_id']}")

    async def of_user(self, request: AdminRequest) -> AdminResponse:
        """The roles that were given to the user: `applications` and `projects`. Conditions and groups may add more."""
        user = await self._users.require(request.path["user_id"])
        applications = await read_assignments_of(self._database, user.user_id, MAX_ASSIGNMENTS)
        projects = await read_memberships_of(self._database, user.user_id, MAX_ASSIGNMENTS)
        return AdminResponse({"data": {"applications": applications, "projects": projects}})

    @asynccontextmanager
    async def _hiding(self, request: AdminRequest, application_id: int) -> AsyncIterator[None]:
        """Hides an application from callers who may neither see it nor the data of its users."""
        try:
            yield
        except Forbidden:
            sections = await self._visibility.sections(request.caller.permissions, application_id)
            if sections <= {"public_data"} or not await self._visibility.exists("application", application_id):
                await self._access.require(request, application_id)
            raise


def _holder(row: Row, *, with_login: bool) -> JsonRecord:
    record = {"role": row["name"], "user_id": row["user_id"], "expired": row["expired"], "ttl": row["ttl"]}
    return record | ({"login": row["login"]} if with_login else {})


def _sections(data: AssignedData | None) -> JsonRecord:
    return {} if data is None else data.model_dump(exclude_unset=True)


async def _read(runner: Runner, user_id: str, application_id: int) -> JsonRecord:
    """The stored record, as ``sso apply`` has it in ``permissions``; without roles and data if there is none."""
    record = record_json(await read_record(runner, user_id, application_id))
    return {"user_id": user_id, "application_id": application_id, **record}


def assignment_routes(assignments: AssignmentResource) -> tuple[AdminRoute, ...]:
    permissions = "/users/<user_id>/permissions"
    return (
        permission_route(
            "GET",
            permissions,
            AdminRight.VIEW_USERS,
            assignments.get,
            PermissionsQuery,
            other_right=AdminRight.VIEW_APPLICATIONS,
            answer=EFFECTIVE_PERMISSIONS,
            states_revision=True,
        ),
        permission_route(
            "PATCH",
            permissions,
            AdminRight.MANAGE_APPLICATIONS,
            assignments.change,
            WriteQuery,
            AssignmentChanges,
            answer=AnswerShape(ASSIGNMENT),
            example={"application_id": 10, "roles": ["player"]},
            fixed_fields={"user_id": "user_id"},
        ),
        permission_route(
            "GET",
            "/applications/<application_id>/holders",
            AdminRight.VIEW_APPLICATIONS,
            assignments.holders,
            HolderQuery,
            answer=AnswerShape(RoleHolderJson),
            operation="list_role_holders",
        ),
        AdminRoute(
            "GET",
            "/users/<user_id>/assignments",
            AdminRight.VIEW_USERS,
            assignments.of_user,
            answer=AnswerShape(AssignmentsJson),
        ),
    )
