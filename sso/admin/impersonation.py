"""/api/admin/users/{user_id}/impersonate: a link with which an administrator sees the account of a player."""

from typing import Annotated

from pydantic import AfterValidator, Field

from sso.accounts.impersonation.operations import MAX_MINUTES, Impersonations
from sso.admin.answers.shape import NO_DATA, AnswerShape
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource
from sso.core.records import without_control_characters
from sso.web.request_model import at_most

MAX_REASON = 500


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must say why the account is opened")
    return text.strip()


class ImpersonationRequest(AdminModel):
    reason: Annotated[
        str, at_most(MAX_REASON), AfterValidator(without_control_characters), AfterValidator(_not_blank)
    ]  # for the audit trail
    minutes: Annotated[int, Field(ge=1, le=MAX_MINUTES)] = 15
    writes: bool = False  # the profile may be changed, and sessions be ended


class ImpersonationResource:
    def __init__(self, users: UserResource, impersonations: Impersonations) -> None:
        self._users = users
        self._impersonations = impersonations

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Returns a link that opens the account page of the user, once and within 60 seconds. The user gets a mail.

        The page cannot be used to change anything. With `writes`, for which `can_manage_users` is required as well, the
        profile can be changed, and sessions can be ended. The account of a user with administrative rights cannot be
        opened.
        """
        body: ImpersonationRequest = request.body
        if body.writes:
            request.caller.require(AdminRight.MANAGE_USERS)
        user = await self._users.require(request.path["user_id"])
        caller = request.caller
        url = await self._impersonations.create_link(
            caller.actor,
            user,
            caller.permissions.address,
            reason=body.reason,
            minutes=body.minutes,
            may_write=body.writes,
        )
        return AdminResponse({"url": url})

    def routes(self) -> tuple[AdminRoute, ...]:
        return (
            AdminRoute(
                "POST",
                "/users/<user_id>/impersonate",
                AdminRight.IMPERSONATE_USERS,
                self.create,
                body=ImpersonationRequest,
                answer=AnswerShape(NO_DATA, {"url": str}),
                operation="impersonate_user",
                summary="Open the account of a user as support",
                example={"reason": "ticket 4711: the player does not find the export", "minutes": 15},
            ),
        )
