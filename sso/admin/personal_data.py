"""DELETE /api/admin/users/{user_id} closes or erases an account; POST …/export returns everything stored about it."""

from collections.abc import Callable

import orjson

from sso.accounts.model import User
from sso.admin.errors import Conflict
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute, record_response
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource, user_json
from sso.db.database import Database
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import BEING_ERASED, AccountErasure, erase_at_once
from sso.personal_data.errors import DeletionRefused
from sso.personal_data.export import export_user
from sso.web.request_model import Flag


class DeletionQuery(AdminModel):
    now: Flag = False  # erase the account at once; it cannot be restored


class PersonalDataResource:
    def __init__(
        self, database: Database, users: UserResource, deletion: AccountDeletion, erasure: AccountErasure
    ) -> None:
        self._database = database
        self._users = users
        self._deletion = deletion
        self._erasure = erasure

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Closes the account. It is erased after ``SSO_DELETION_DAYS``; until then ``disabled: false`` restores it.

        With ``now=1`` it is erased at once.
        """
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        query: DeletionQuery = request.query
        try:
            if query.now:
                return await self._erase(request, user)
            await self._deletion.request(
                user, None, by="operator", actor=request.caller.actor, precondition=_version_check(request)
            )
        except DeletionRefused as error:
            raise Conflict(str(error.text)) from None
        return record_response(user_json(await self._users.require(user.user_id)))

    async def _erase(self, request: AdminRequest, user: User) -> AdminResponse:
        actor = request.caller.actor
        if not await erase_at_once(self._deletion, self._erasure, user, actor, _version_check(request)):
            raise Conflict(f"the account {BEING_ERASED}")
        return AdminResponse()

    async def export(self, request: AdminRequest) -> AdminResponse:
        """Returns everything that is stored about the user, without passwords and other secrets.

        The export is in the audit trail, and in the history that the user sees.
        """
        user = await self._users.require_manageable(request.caller, request.path["user_id"])
        document = await export_user(self._database, user.user_id, request.caller.actor)
        return AdminResponse({"data": orjson.Fragment(document)})


def _version_check(request: AdminRequest) -> Callable[[User], None]:
    return lambda current: request.check_version(user_json(current))


def personal_data_routes(resource: PersonalDataResource) -> tuple[AdminRoute, ...]:
    manage, user = AdminRight.MANAGE_USERS, "/users/<user_id>"
    return (
        AdminRoute("DELETE", user, manage, resource.delete, DeletionQuery),
        AdminRoute("POST", f"{user}/export", manage, resource.export, summary="Export the data of a user"),
    )
