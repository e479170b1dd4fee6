"""/api/admin/groups: lists, creates, changes and deletes groups of projects."""

from functools import partial
from typing import Literal

from msgspec.structs import replace

from sso.admin.answers.permissions import GROUP
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import RecordAccess
from sso.admin.permission_bodies import GroupChanges, NewGroup
from sso.admin.permission_resource import PermissionResource, permission_kind
from sso.admin.request import AdminRequest, AdminResponse, JsonRecord, SortedQuery, sorted_response
from sso.admin.rights import AdminRight
from sso.admin.user_logins import read_logins
from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Row, Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.input.groups import read_group_changes
from sso.perm.input.names import is_group_id
from sso.perm.operations.groups import GroupOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.group_directory import find_group_page
from sso.perm.stores.groups import group_json, read_group
from sso.perm.stores.projects import resolve_project_id
from sso.perm.visibility import Visibility


class GroupQuery(SortedQuery):
    sort: Literal["title"] | None = None  # of the groups of one project; without it: the id
    project_id: str | None = None


class GroupResource(PermissionResource[str]):
    kind = permission_kind(
        "group",
        "/groups",
        "/groups/<group_id>",
        AdminRight.VIEW_PROJECTS,
        AdminRight.MANAGE_PROJECTS,
        NewGroup,
        {
            "project_id": "space_game",
            "title": "Testers",
            "conditions": [{"title": "Tag", "condition": {"tag": "tester"}}],
        },
        GroupChanges,
        {"users": ["1001", "1002"]},
        {"group_id": "group_id", "project_id": ""},
        GroupQuery,
        record=GROUP,
        answers={"get": AnswerShape(GROUP, {"logins": dict[str, str]})},
    )

    def __init__(self, database: Database, groups: GroupOperations, visibility: Visibility) -> None:
        super().__init__(database, RecordAccess(visibility, "group", Operation.GROUP_GET, AdminRight.VIEW_PROJECTS))
        self._groups = groups
        self._projects = RecordAccess(visibility, "project", Operation.PROJECT_GET, AdminRight.MANAGE_PROJECTS)

    def key(self, request: AdminRequest) -> str:
        group_id = request.path["group_id"]
        if not is_group_id(group_id):
            raise NotFound("group not found")
        return group_id

    def visible_by(self, key: str) -> str:
        return key

    async def find(self, runner: Runner, key: str) -> JsonRecord | None:
        row = await read_group(runner, key)
        return None if row is None else group_record(row)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: GroupQuery = request.query
        visible = await self.access.visible_in_project(request, query.project_id)
        ids = None if visible.everything else visible.ids
        if query.project_id is None and (query.sort or query.order != "asc"):
            raise FieldError(("sort",), "needs project_id")
        page = await find_group_page(self.database, query.page, query.project_id, ids)
        return sorted_response(page, group_record)

    async def get(self, request: AdminRequest) -> AdminResponse:
        """One group. Callers who see users also get `logins` of its users by their ids."""
        response = await super().get(request)
        logins = await read_logins(request, self.database, response.members["data"]["users"])
        return response if logins is None else replace(response, members={**response.members, "logins": logins})

    async def create(self, request: AdminRequest) -> AdminResponse:
        body: NewGroup = request.body
        fields, warnings = read_group_changes(body.given("group_id", "project_id", "undo_of"))

        async def create(context: ManagementContext) -> OperationResult[Row]:
            project_id = await resolve_project_id(self.database, body.project_id)
            return await self._groups.create(context, project_id, fields, body.group_id, body.undo_of)

        async with self._projects.hiding(request, body.project_id):
            return await self.create_record(request, create, lambda group: str(group["id"]), warnings)

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: GroupChanges = request.body
        changes, warnings = read_group_changes(body.given())
        change = partial(self._groups.change, group_id=self.key(request), changes=changes)
        return await self.change_record(request, change, warnings)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        delete = partial(self._groups.delete, group_id=self.key(request))
        return await self.change_record(request, delete, deleted=True)


def group_record(row: Row) -> JsonRecord:
    record = group_json(row)
    return {"group_id": record.pop("id"), **record}
