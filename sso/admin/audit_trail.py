"""/api/admin/audit: lists the entries of the audit trail, and returns one of them."""

from typing import Annotated

from pydantic import Field

from sso.admin.request import AdminRequest, AdminResponse, ListQuery, page_response, read_number_cursor
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.input.field_types import ApplicationId
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditFilter
from sso.perm.stores.timestamps import rfc3339
from sso.web.request_model import WholeNumber, at_most

Moment = Annotated[WholeNumber, Field(ge=0, le=253402300799)]  # Unix seconds, up to the year 9999
MAX_AUDIT_ID = 2**63 - 1
_ENTRY = Statement("SELECT * FROM audit WHERE id = :id")


class AuditQuery(ListQuery):
    actor: Annotated[str, at_most(64)] | None = None  # a user id
    target: Annotated[str, at_most(512)] | None = None
    operation: Annotated[str, at_most(64)] | None = None
    project_id: Annotated[str, at_most(64)] | None = None
    application_id: ApplicationId | None = None
    since: Moment | None = None
    until: Moment | None = None


class AuditTrail:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Returns the newest entries first. ``after`` is the id of the last entry of the previous page."""
        query: AuditQuery = request.query
        entries = await audit.read(
            self._database,
            AuditFilter(
                user_id=query.actor,
                target=query.target,
                operation=query.operation,
                project_id=query.project_id,
                application_id=query.application_id,
                since=query.since,
                until=query.until,
                before_id=read_number_cursor(query.after, MAX_AUDIT_ID) or None,
                limit=query.limit + 1,
            ),
        )
        return page_response(entries, query.limit, lambda entry: str(entry["id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        entry_id = request.path["entry_id"]
        row = await self._database.row(_ENTRY, id=int(entry_id)) if _is_entry_id(entry_id) else None
        if row is None:
            raise NotFound("entry not found")
        return AdminResponse({"data": {**dict(row), "at": rfc3339(row["at"])}})


def _is_entry_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) <= MAX_AUDIT_ID
