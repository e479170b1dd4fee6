"""/api/admin/registration-tokens: the tokens with which programs register OAuth clients."""

from typing import Annotated

from pydantic import Field

from sso.admin.answers.service import NewRegistrationTokenJson, RegistrationTokenJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.record_resource import RecordKind
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    JsonRecord,
    ListQuery,
    list_response,
    read_number_cursor,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.moments import rfc3339
from sso.db.database import Database
from sso.oauth.registration.store import RegistrationToken, list_tokens
from sso.oauth.registration.tokens import create_token, delete_token

MAX_USES, MAX_DAYS = 1000, 365
MAX_TOKEN_ID = 2**63 - 1


class RegistrationTokenRecord(AdminModel):
    uses: Annotated[int, Field(ge=1, le=MAX_USES)] = 1  # how many clients it registers
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 7  # for which it works


class RegistrationTokenResource:
    kind = RecordKind(
        "registration token",
        "/registration-tokens",
        "/registration-tokens/<token_id>",
        AdminRight.VIEW_CLIENTS,
        AdminRight.MANAGE_CLIENTS,
        RegistrationTokenRecord,
        {"uses": 5, "days": 7},
        list_query=ListQuery,
        details={
            "create": "Creates a token with which programs register clients. The response has it, and it is not shown "
            "again.",
            "delete": "Revokes the token. Clients that were registered with it stay.",
        },
        record=RegistrationTokenJson,
        answers={"create": AnswerShape(NewRegistrationTokenJson, status=201)},
    )

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Returns the tokens that can still be used, the oldest first."""
        query: ListQuery = request.query
        after = read_number_cursor(query.after, MAX_TOKEN_ID)
        found = await list_tokens(self._database, after, query.limit + 1)
        shown = found[: query.limit]
        return list_response([_json(token) for token in shown], shown[-1].id if len(found) > query.limit else None)

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: RegistrationTokenRecord = request.body
        actor = request.caller.actor
        token, secret = await self._database.transaction(create_token, actor, body.uses, body.days)
        return AdminResponse({"data": {**_json(token), "token": secret}}, 201)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        text = request.path["token_id"]
        if not (text.isascii() and text.isdecimal() and len(text) < 19):
            raise NotFound("registration token not found")
        await self._database.transaction(delete_token, request.caller.actor, int(text))
        return AdminResponse()


def _json(token: RegistrationToken) -> JsonRecord:
    return {
        "id": token.id,
        "uses": token.uses,
        "uses_left": token.uses_left,
        "created": rfc3339(token.created),
        "expires": rfc3339(token.expires),
    }
