"""/api/admin/groups: lists, creates, changes and deletes groups of projects."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sso.admin.permission_access import (
    Operate,
    RecordAccess,
    change_record,
    create_record,
    page_query,
    permission_route,
)
from sso.admin.permission_bodies import GroupChanges, NewGroup
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    JsonRecord,
    SearchQuery,
    WriteQuery,
    page_response,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.admin.user_logins import read_logins
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Row, Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.input.groups import read_group_changes
from sso.perm.input.names import is_group_id
from sso.perm.operations.groups import GroupOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.groups import group_json, read_group
from sso.perm.stores.projects import resolve_project_id
from sso.perm.stores.record_pages import find_group_page
from sso.perm.visibility import Visibility


class GroupQuery(SearchQuery):
    project_id: str | None = None


class GroupResource:
    def __init__(self, database: Database, groups: GroupOperations, visibility: Visibility) -> None:
        self._database = database
        self._groups = groups
        self._access = RecordAccess(visibility, "group", Operation.GROUP_GET, AdminRight.VIEW_PROJECTS)
        self._projects = RecordAccess(visibility, "project", Operation.PROJECT_GET, AdminRight.MANAGE_PROJECTS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: GroupQuery = request.query
        visible = await self._access.visible_in_project(request, query.project_id)
        rows = await find_group_page(self._database, page_query(query, visible), query.after, query.project_id)
        return page_response([group_record(row) for row in rows], query.limit, lambda record: str(record["group_id"]))

    async def get(self, request: AdminRequest) -> AdminResponse:
        """One group. Callers who see users also get `logins` of its users by their ids."""
        group_id = _path_group_id(request)
        await self._access.require(request, group_id)
        response = record_response(record := await _read(self._database, group_id))
        logins = await read_logins(request, self._database, record["users"])
        return response if logins is None else replace(response, members={**response.members, "logins": logins})

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewGroup = request.body
        fields, warnings = read_group_changes(body.given("group_id", "project_id"))

        async def create(context: ManagementContext) -> OperationResult[Row]:
            project_id = await resolve_project_id(self._database, body.project_id)
            return await self._groups.create(context, project_id, fields, body.group_id)

        async def read(runner: Runner, group: Row) -> JsonRecord:
            return await _read(runner, group["id"])

        async with self._projects.hiding(request, body.project_id):
            return await create_record(request, self._database, create, read, warnings)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: GroupChanges = request.body
        group_id = _path_group_id(request)
        changes, warnings = read_group_changes(body.given())
        operate = partial(self._groups.change, group_id=group_id, changes=changes)
        return await self._write(request, operate, warnings)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        group_id = _path_group_id(request)
        return await self._write(request, partial(self._groups.delete, group_id=group_id), deleted=True)

    async def _write(
        self, request: AdminRequest, operate: Operate[Any], warnings: Sequence[str] = (), *, deleted: bool = False
    ) -> AdminResponse:
        group_id = _path_group_id(request)

        async def read(runner: Runner) -> JsonRecord:
            return await _read(runner, group_id)

        async with self._access.hiding(request, group_id):
            return await change_record(request, self._database, operate, read, warnings, deleted=deleted)


def _path_group_id(request: AdminRequest) -> str:
    group_id = request.path["group_id"]
    if not is_group_id(group_id):
        raise NotFound("group not found")
    return group_id


async def _read(runner: Runner, group_id: str) -> JsonRecord:
    row = await read_group(runner, group_id)
    if row is None:
        raise NotFound("group not found")
    return group_record(row)


def group_record(row: Row) -> JsonRecord:
    record = group_json(row)
    return {"group_id": record.pop("id"), **record}


def group_routes(groups: GroupResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_PROJECTS, AdminRight.MANAGE_PROJECTS
    one = "/groups/<group_id>"
    return (
        permission_route("GET", "/groups", view, groups.list, GroupQuery),
        permission_route(
            "POST",
            "/groups",
            manage,
            groups.create,
            WriteQuery,
            NewGroup,
            example={
                "project_id": "space_game",
                "title": "Testers",
                "conditions": [{"title": "Tag", "condition": {"tag": "tester"}}],
            },
        ),
        permission_route("GET", one, view, groups.get),
        permission_route(
            "PATCH",
            one,
            manage,
            groups.change,
            WriteQuery,
            GroupChanges,
            example={"users": ["1001", "1002"]},
            fixed_fields={"group_id": "group_id", "project_id": ""},
        ),
        permission_route("DELETE", one, manage, groups.delete, DeleteQuery),
    )
