"""/api/admin/invitations: invites new users by e-mail, lists and revokes the invitations that can still be used."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field

from sso.accounts.registration.invitations import Invitation
from sso.accounts.registration.wiring import UserRegistration
from sso.accounts.user_record import Login
from sso.admin.answers.shape import AnswerShape
from sso.admin.answers.users import InvitationJson, NewInvitationJson
from sso.admin.record_resource import RecordKind
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    ListQuery,
    list_response,
    read_number_cursor,
    read_pair_cursor,
)
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource
from sso.audit import trail
from sso.core.errors import Conflict, NotFound
from sso.core.field_errors import FieldError
from sso.core.language_names import LANGUAGES, SOURCE
from sso.core.moments import rfc3339
from sso.core.records import RecordModel
from sso.web.request_model import at_most

MAX_DAYS = 365
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_MICROSECONDS = 253402300799 * 10**6  # the year 9999


class InvitationRecord(RecordModel):
    login: Login
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 7  # for which the link works
    lang: Annotated[str, at_most(16)] = SOURCE  # in which the e-mail is written


class InvitationResource:
    kind = RecordKind(
        "invitation",
        "/invitations",
        "/invitations/<invitation_id>",
        AdminRight.VIEW_USERS,
        AdminRight.MANAGE_USERS,
        InvitationRecord,
        {"login": "bob@example.com", "days": 7},
        list_query=ListQuery,
        record=InvitationJson,
        answers={"create": AnswerShape(NewInvitationJson, status=201)},
    )

    def __init__(self, users: UserResource, registration: UserRegistration, *, sends_mail: bool) -> None:
        self._database = users.database
        self._users = users
        self._invitations = registration.invitations
        self._registration = registration.mode  # closed, open, invite
        self._sends_mail = sends_mail

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Returns the oldest invitations first."""
        query: ListQuery = request.query
        found = await self._invitations.list(*_read_cursor(query.after), query.limit + 1)
        shown = found[: query.limit]
        records = [
            {
                "id": invitation.id,
                "login": invitation.login,
                "created": rfc3339(invitation.created),
                "expires": rfc3339(invitation.expires),
            }
            for invitation in shown
        ]
        return list_response(records, _cursor(shown[-1]) if len(found) > query.limit else None)

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Returns the link, which works once. It is mailed if the service sends mail.

        The caller could use the link, so the new user must not have more rights than the caller.
        """
        part: InvitationRecord = request.body
        if part.lang not in LANGUAGES:
            raise FieldError(("lang",), f"must be one of {', '.join(LANGUAGES)}")
        if self._registration == "closed":
            raise Conflict("invitations need SSO_REGISTRATION to be invite or open")
        await self._users.require_creatable(request.caller, part.login)
        after = {"days": part.days, "mailed": self._sends_mail}
        await trail.write(self._database, request.caller.actor, "invitation.create", part.login, None, after)
        link = await self._invitations.create(part.login, part.days, part.lang, sends_mail=self._sends_mail)
        return AdminResponse({"data": {"login": part.login, "link": link, "mailed": self._sends_mail}}, 201)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        invitation_id = request.path["invitation_id"]
        listed = {invitation.id: invitation for invitation in await self._invitations.list()}
        if invitation_id not in listed:
            raise NotFound("invitation not found")
        login = listed[invitation_id].login
        before = {"id": invitation_id, "expires": rfc3339(listed[invitation_id].expires)}
        await trail.write(self._database, request.caller.actor, "invitation.delete", login, before, None)
        await self._invitations.revoke([invitation_id])
        return AdminResponse()


def _cursor(invitation: Invitation) -> str:
    return f"{(invitation.created - EPOCH) // timedelta(microseconds=1)}/{invitation.id}"


def _read_cursor(after: str) -> tuple[int, str]:
    microseconds, invitation_id = read_pair_cursor(after)
    return read_number_cursor(microseconds, MAX_MICROSECONDS), invitation_id
