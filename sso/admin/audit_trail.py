"""/api/admin/audit: lists the entries of the audit trail, and returns one of them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from sso.accounts.user_directory_store import find_user_id
from sso.admin.answers.shape import AnswerShape
from sso.admin.answers.users import AuditEntryJson
from sso.admin.caller import AdminCaller
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
from sso.audit import trail
from sso.audit.trail import AuditFilter
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.perm.input.field_types import ApplicationId
from sso.web.request_model import at_most

MAX_TIME = 253402300799  # the end of the year 9999
MAX_AUDIT_ID = 2**63 - 1


def _moment(value: object) -> int:
    """Reads Unix seconds, or a time as in the entries: ``2026-01-31T18:00:00Z``."""
    text = str(value)
    try:
        if text.isdecimal() and text.isascii():
            return min(int(text), MAX_TIME)
        time = datetime.fromisoformat(text)
        return min(max(int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()), 0), MAX_TIME)
    except (ValueError, OverflowError):
        raise ValueError("must be Unix seconds, or a time such as 2026-01-31T18:00:00Z") from None


Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema({"type": "integer", "minimum": 0})]


class AuditQuery(ListQuery):
    actor: Annotated[str, at_most(320)] | None = None  # a user id or a login
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
        entries = await trail.read(
            self._database,
            AuditFilter(
                user_id=await self._user_id(query.actor),
                target=await self._user_id(query.target),
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

    async def _user_id(self, name: str | None) -> str | None:
        """Returns the id of the user with the login ``name``, and other names as they are."""
        if name is None or "@" not in name:
            return name
        return await find_user_id(self._database, name) or name

    async def get(self, request: AdminRequest) -> AdminResponse:
        entry_id = request.path["entry_id"]
        entry = await trail.read_entry(self._database, int(entry_id)) if _is_entry_id(entry_id) else None
        if entry is None:
            raise NotFound("entry not found")
        return record_response(entry)


class ExportAudit:
    """Audits exports of lists: files with many records, which leave the service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(
        self, caller: AdminCaller, exported: str, filters: Mapping[str, str], records: int | None = None
    ) -> None:
        """Writes an entry with what is exported, such as ``users``, and how many records the file has, if known."""
        after: dict[str, Any] = {"filter": {name: value for name, value in filters.items() if value}}
        if records is not None:
            after["records"] = records
        await trail.write(self._database, caller.actor, "list.export", exported, None, after)


def _is_entry_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) <= MAX_AUDIT_ID


def audit_routes(entries: AuditTrail) -> tuple[AdminRoute, ...]:
    view, answer = AdminRight.VIEW_AUDIT, AnswerShape(AuditEntryJson)
    return (
        AdminRoute("GET", "/audit", view, entries.list, AuditQuery, answer=answer, operation="list_audit_entries"),
        AdminRoute("GET", "/audit/<entry_id>", view, entries.get, answer=answer, operation="get_audit_entry"),
    )
