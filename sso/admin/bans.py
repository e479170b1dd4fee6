"""/api/admin/users/{user_id}/bans: bans of a user everywhere, in a project, or at an application."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from sso.accounts.bans.operations import BanOperations, NewBan
from sso.accounts.bans.store import StoredBan, get_ban, list_bans
from sso.accounts.merged_user_store import surviving_user
from sso.admin.answers.shape import NO_DATA_ANSWER, AnswerShape
from sso.admin.answers.users import BanJson
from sso.admin.permission_access import path_user_id, permission_route
from sso.admin.protected_users import ProtectedUsers
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    record_response,
    slice_response,
)
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource
from sso.core.ban import MAX_REASON
from sso.core.errors import Conflict, Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import MAX_APPLICATION_ID
from sso.core.moments import rfc3339
from sso.core.records import without_control_characters
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE, PermissionWriter
from sso.perm.operations.bans import BanRights
from sso.personal_data.errors import only_administrator
from sso.web.request_model import at_most

MAX_NOTE = 2000
LATEST = 253_402_300_799  # the end of the year 9999
_EXPECTED_SCOPE = 'must be "all", {"project_id": …} or {"application_id": …}'


def _scope(value: Any) -> JsonRecord:
    """Returns the fields of the ban."""
    if value == "all":
        return {}
    if isinstance(value, dict) and len(value) == 1:
        application_id, project_id = value.get("application_id"), value.get("project_id")
        is_id = type(application_id) is int and 0 < application_id <= MAX_APPLICATION_ID
        if is_id or (isinstance(project_id, str) and 0 < len(project_id) <= 64 and "\0" not in project_id):
            return dict(value)
    raise ValueError(_EXPECTED_SCOPE)


_SCOPE_SCHEMA = {
    "anyOf": [
        {"type": "string", "enum": ["all"]},
        {"type": "object", "properties": {"project_id": {"type": "string"}}, "required": ["project_id"]},
        {"type": "object", "properties": {"application_id": {"type": "integer"}}, "required": ["application_id"]},
    ]
}
Scoped = Annotated[Any, PlainValidator(_scope), WithJsonSchema(_SCOPE_SCHEMA)]


class BanCreation(AdminModel):
    scope: Scoped
    until: Annotated[int, Field(ge=0, le=LATEST)] | None = None  # Unix seconds; null: for ever
    reason: Annotated[str, at_most(MAX_REASON), AfterValidator(without_control_characters)] = ""  # for the player
    note: Annotated[str, at_most(MAX_NOTE)] = ""  # for the staff


class BanResource:
    def __init__(
        self,
        users: UserResource,
        operations: BanOperations,
        writer: PermissionWriter,
        rights: BanRights,
        protected: ProtectedUsers,
    ) -> None:
        self._database = users.database
        self._users = users
        self._operations = operations
        self._writer = writer
        self._rights = rights
        self._protected = protected

    async def list(self, request: AdminRequest) -> AdminResponse:
        """The bans of the user, also of one who was erased. Callers who do not see users get those in their scope."""
        user_id = await self._user_id(request)
        bans = await list_bans(self._database, user_id)
        if not bans:
            await self._users.require(user_id)
        if not request.caller.sees_users:
            bans = [item for item in bans if await self._allows(request, item.ban.application_id, item.ban.project_id)]
        return slice_response([ban_json(ban) for ban in bans], request.query, lambda ban: str(ban["id"]))

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Bans the user, or the one whom it was merged into.

        What was issued in the scope ends at once: sessions, tokens, sockets, held polls.
        """
        body: BanCreation = request.body
        user_id, new = await self._user_id(request), NewBan(body.reason, body.note, body.until, **body.scope)
        if not await self._allows(request, new.application_id, new.project_id):
            raise _refusal(new.application_id, new.project_id)
        if new.until is not None and new.until <= self._database.clock.now():
            raise FieldError(("until",), "must be in the future, in Unix seconds, or null")
        await self._users.require(user_id)
        await self._rights.require_bannable(request.caller.permissions, user_id, new)
        await self._protected.require_manageable(request.caller, user_id)
        try:
            written = await self._writer.write(
                WRITE, Scope.account(user_id), self._operations.ban, request.caller.actor, user_id, new
            )
        except LastAdministrator as error:
            raise Conflict(str(only_administrator(error))) from None
        return record_response(ban_json(written.result), 201)

    async def lift(self, request: AdminRequest) -> AdminResponse:
        """Lifts one ban. Others stay, and nothing that was ended comes back.

        Nobody lifts a ban of their own. A caller without can_ban_users lifts only bans that the caller could have made.
        """
        user_id, ban_id = await self._user_id(request), request.path["ban_id"]
        stored = await get_ban(self._database, user_id, ban_id)
        if stored is None or not await self._allows(request, stored.ban.application_id, stored.ban.project_id):
            raise NotFound("ban not found")
        caller = request.caller
        if user_id == caller.permissions.user_id:
            raise Conflict("you cannot lift your own ban")
        if AdminRight.BAN_USERS not in caller.rights:
            await self._rights.require_removable(caller.permissions, user_id, stored.ban)
        if await self._database.transaction(self._operations.unban, request.caller.actor, user_id, ban_id) is None:
            raise NotFound("ban not found")
        return AdminResponse()

    async def _user_id(self, request: AdminRequest) -> str:
        return await surviving_user(self._database, path_user_id(request))

    async def _allows(self, request: AdminRequest, application_id: int | None, project_id: str | None) -> bool:
        if AdminRight.BAN_USERS in request.caller.rights:
            return True
        return await self._rights.allows(request.caller.permissions, application_id, project_id)


def _refusal(application_id: int | None, project_id: str | None) -> Forbidden:
    """The same whether or not the application or project exists."""
    more = "" if application_id is None else " or app.can_ban_users"
    more = f", project.can_ban_users{more}" if application_id is not None or project_id is not None else more
    return Forbidden(f"can_ban_users{more} is required")


def ban_json(stored: StoredBan) -> JsonRecord:
    ban = stored.ban
    return {
        "id": ban.ban_id,
        "user_id": stored.user_id,
        "scope": ban.scope,
        "until": ban.until,
        "reason": ban.reason,
        "note": stored.note,
        "author": stored.author,
        "created": rfc3339(stored.created),
    }


def ban_routes(bans: BanResource) -> tuple[AdminRoute, ...]:
    path, right = "/users/<user_id>/bans", AdminRight.BAN_USERS
    example = {"scope": {"application_id": 10}, "until": 1_900_000_000, "reason": "Cheating", "note": "report 4711"}
    return (
        permission_route(
            "GET", path, right, bans.list, ListQuery, other_right=AdminRight.VIEW_USERS, answer=AnswerShape(BanJson)
        ),
        permission_route(
            "POST",
            path,
            right,
            bans.create,
            body=BanCreation,
            answer=AnswerShape(BanJson, status=201),
            operation="ban_user",
            summary="Ban a user",
            example=example,
        ),
        permission_route(
            "DELETE",
            f"{path}/<ban_id>",
            right,
            bans.lift,
            answer=NO_DATA_ANSWER,
            operation="unban_user",
            summary="Lift a ban",
        ),
    )
