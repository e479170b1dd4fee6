"""Passes requests of the management API to the operations on permissions, and hides records a caller may not see.

A caller who may see other records of the kind learns nothing about the hidden ones (404). A caller who may see none
gets 403 with the right that is missing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from msgspec import Struct

from sso.admin.request import AdminRequest, AdminRoute
from sso.admin.rights import AdminRight
from sso.core.errors import Forbidden, NotFound
from sso.core.ids import is_user_id
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, is_application_key, is_segment
from sso.perm.visibility import Visibility, Visible
from sso.web.body import SCHEMA_BODY

# A route of the management API whose handler also serves callers with permissions in place of the right.
permission_route = partial(AdminRoute, by_permissions=True, body_limit=SCHEMA_BODY)

AT_CENTRAL_APPLICATION = "the role root is required at the central application"


class RecordAccess(Struct, frozen=True):
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
