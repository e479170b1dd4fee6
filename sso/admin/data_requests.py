"""/api/admin/data-requests: what games were asked about the data of users, and whether they have answered."""

from typing import Annotated, Literal

from pydantic import Field

from sso.admin.answers.shape import AnswerShape
from sso.admin.answers.users import DataRequestJson
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    ListQuery,
    page_response,
    read_number_cursor,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.personal_data.games import operations
from sso.personal_data.games.model import DataRequest
from sso.personal_data.games.request_store import RequestFilter, list_requests
from sso.web.request_model import WholeNumber, at_most

MAX_NUMBER = 2**63 - 1


class DataRequestQuery(ListQuery):
    kind: Literal["data", "characters", "remove"] | None = None
    state: Literal["pending", "waiting", "done", "failed"] | None = None
    user_id: Annotated[str, at_most(64)] | None = None
    application_id: Annotated[WholeNumber, Field(ge=1, le=MAX_APPLICATION_ID)] | None = None


class DataRequestResource:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Lists what games were asked, the newest first: for exports, and to remove the data of erased users.

        The parts of an export are listed for 7 days, removals until 90 days after their end.
        """
        query: DataRequestQuery = request.query
        before = read_number_cursor(query.after, MAX_NUMBER) or MAX_NUMBER
        wanted = RequestFilter(query.kind, query.state, query.user_id, query.application_id)
        found = await list_requests(self._database, wanted, before, query.limit + 1)
        return page_response([one.json() for one in found], query.limit, lambda one: str(one["id"]))

    async def retry(self, request: AdminRequest) -> AdminResponse:
        """Sends a request again that has failed, or waits for its next attempt."""
        text = request.path["number"]
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= MAX_NUMBER):
            raise NotFound("data request not found")

        async def work(tx: Transaction) -> DataRequest:
            return await operations.retry(tx, request.caller.actor, int(text))

        return record_response((await self._database.transaction(work)).json())


def data_request_routes(resource: DataRequestResource) -> tuple[AdminRoute, ...]:
    answer = AnswerShape(DataRequestJson)
    return (
        AdminRoute("GET", "/data-requests", AdminRight.VIEW_USERS, resource.list, DataRequestQuery, answer=answer),
        AdminRoute(
            "POST",
            "/data-requests/<number>/retry",
            AdminRight.MANAGE_USERS,
            resource.retry,
            answer=answer,
            operation="retry_data_request",
            summary="Send a data request again",
        ),
    )
