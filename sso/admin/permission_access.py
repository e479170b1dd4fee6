"""Passes requests of the management API to the operations on permissions, and hides records a caller may not see.

A caller who may see other records of the kind learns nothing about the hidden ones (404). A caller who may see none
gets 403 with the right that is missing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, JsonRecord, SearchQuery, record_response
from sso.admin.rights import AdminRight
from sso.core.errors import Forbidden, NotFound
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, is_application_key, is_segment
from sso.perm.operations.writes import ManagementContext, OperationResult, Precondition
from sso.perm.stores.record_pages import PageQuery
from sso.perm.visibility import Visibility, Visible
from sso.web.body import SCHEMA_BODY

# A route of the management API whose handler also serves callers with permissions in place of the right.
permission_route = partial(AdminRoute, by_permissions=True, body_limit=SCHEMA_BODY)

T = TypeVar("T")

AT_CENTRAL_APPLICATION = "the role root is required at the central application"


@dataclass(frozen=True)
class RecordAccess:
    """The records of one kind that a caller may see: those on which the caller may do ``operation``."""

    visibility: Visibility
    kind: str  # application, project or group: the record that rights depend on
    operation: Operation
    right: AdminRight

    async def visible(self, request: AdminRequest) -> Visible:
        """Raises Forbidden if the caller may see none."""
        visible = await self.visibility.records(self.kind, request.caller.permissions, self.operation)
        if not visible:
            raise Forbidden(f"{self.right} is required")
        return visible

    async def require(self, request: AdminRequest, record_id: int | str) -> None:
        """Raises NotFound or Forbidden if the caller may not see the record, or it does not exist."""
        visible = await self.visible(request)
        if record_id in visible and await self.visibility.exists(self.kind, record_id):
            return
        if visible.everything and record_id == CENTRAL_APPLICATION_ID:
            raise Forbidden(AT_CENTRAL_APPLICATION)
        raise NotFound(f"{self.kind} not found")

    async def visible_in_project(self, request: AdminRequest, project_id: str | None) -> Visible:
        """Like `visible`. Raises NotFound for the filter of a list by a project that the caller may not see.

        A member of the project may see none of its records, for example because there are none yet.
        """
        if project_id is None:
            return await self.visible(request)
        caller = request.caller.permissions
        visible = await self.visibility.records(self.kind, caller, self.operation)
        if await self.visibility.may_name_project(caller, project_id, visible):
            return visible
        if not visible:
            raise Forbidden(f"{self.right} is required")
        raise NotFound("project not found")

    async def visible_at_application(self, request: AdminRequest, application_id: int | None) -> Visible:
        """Like `visible`. Raises NotFound or Forbidden for the filter of a list by such an application."""
        if application_id is not None:
            await self.require(request, application_id)
        return await self.visible(request)

    @asynccontextmanager
    async def hiding(self, request: AdminRequest, record_id: int | str) -> AsyncIterator[None]:
        """Replaces the Forbidden of an operation if the caller may not see the record either, or it does not exist."""
        try:
            yield
        except Forbidden:
            await self.require(request, record_id)
            raise


def page_query(query: SearchQuery, visible: Visible) -> PageQuery:
    """Returns the query for one record more than the page has, which shows whether there is another page."""
    return PageQuery(query.search, visible.everything, visible.ids, query.limit + 1)


Operate: TypeAlias = Callable[[ManagementContext], Awaitable[OperationResult[T]]]


def management_context(
    request: AdminRequest, precondition: Precondition | None = None, warnings: Sequence[str] = ()
) -> ManagementContext:
    """Returns the context of an operation on permissions that the request asks for."""
    override = getattr(request.body, "override", False) or getattr(request.query, "override", False)
    return ManagementContext(request.caller.permissions, is_dry_run(request), override, precondition, list(warnings))


async def change_record(
    request: AdminRequest,
    database: Database,
    operate: Operate[Any],
    read: Callable[[Runner], Awaitable[JsonRecord]],
    warnings: Sequence[str] = (),
    *,
    deleted: bool = False,
) -> AdminResponse:
    """Changes a record if the caller has read its present version, and returns it as it is then.

    ``read`` reads the record and raises NotFound if there is none. ``warnings`` are those about the input. After a
    deletion, the response has no record.
    """

    async def precondition(tx: Transaction) -> None:
        request.check_version(await read(tx))

    written = await operate(management_context(request, precondition, warnings))
    if written.is_dry_run or deleted:
        return AdminResponse(written.members())
    return record_response(await read(database), warnings=written.context.warnings)


async def create_record(
    request: AdminRequest,
    database: Database,
    operate: Operate[T],
    read: Callable[[Runner, T], Awaitable[JsonRecord]],
    warnings: Sequence[str] = (),
    precondition: Precondition | None = None,
) -> AdminResponse:
    """``read`` reads the record that the operation has returned. ``warnings`` are those about the input."""
    written = await operate(management_context(request, precondition, warnings))
    if written.is_dry_run:
        return AdminResponse(written.members())
    return record_response(await read(database, written.result), 201, written.context.warnings)


def require_root_to_choose(request: AdminRequest, name: str) -> None:
    """Raises Forbidden if a caller without the role root chooses an id or a key, which others may rely on already."""
    if getattr(request.body, name) is not None and not request.caller.is_root:
        raise Forbidden(f"{name}: the role root is required to choose it")


def is_dry_run(request: AdminRequest) -> bool:
    return bool(getattr(request.query, "dry_run", False))


def path_project_id(request: AdminRequest) -> str:
    project_id = request.path["project_id"]
    if not is_segment(project_id):
        raise NotFound("project not found")
    return project_id


def path_user_id(request: AdminRequest) -> str:
    user_id = request.path["user_id"]
    if not is_user_id(user_id):
        raise NotFound("user not found")
    return user_id


def path_application_id(request: AdminRequest) -> int:
    text = request.path["application_id"]
    if not is_application_key(text):
        raise NotFound("application not found")
    return int(text)
