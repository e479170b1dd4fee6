"""POST /api/permissions/group, and its access settings and tags (§2.5, §4.7)."""

from typing import Any

from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import run_pure
from sso.perm.engine.required_rights import Operation
from sso.perm.input.groups import MAX_GROUP_USERS, read_group_changes, read_group_fields
from sso.perm.input.names import read_group_id
from sso.perm.input.tags import read_tags
from sso.perm.operations.groups import GroupOperations
from sso.perm.operations.lookups import ProjectLookup
from sso.perm.request import PermissionRequest
from sso.perm.stores.compilation import is_large_json
from sso.perm.stores.groups import group_json

FIELDS = frozenset(("id", "project_id", "title", "description", "tags", "conditions", "users"))
ACCESS_FIELDS = ("id", "project_id", "title", "conditions", "users")


class GroupEndpoint:
    def __init__(self, database: Database, groups: GroupOperations, projects: ProjectLookup) -> None:
        self._database = database
        self._groups = groups
        self._projects = projects

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        """Returns the groups of a project that the caller manages, an empty list if there are none."""
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        project_id = await self._projects.read_project_id(data.get("project_id"), ("data", "project_id"))
        groups = [group_json(row) for row in await self._groups.visible(request.caller, project_id)]
        return request.response(data={"groups": groups, "max_users_cnt": MAX_GROUP_USERS})

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        fields = read_group_fields(data)
        is_new = "group_id" not in request.fields
        if is_new and "title" not in fields:
            raise FieldError(("title",), "is required")
        project_id = None
        if is_new or "project_id" in data:
            project_id = await self._projects.read_project_id(data.get("project_id"), ("data", "project_id"))
        if is_new:
            assert project_id is not None
            write = await self._groups.create(request, project_id, fields)
        else:
            write = await self._groups.change(request, _group_id(request), fields, project_id=project_id)
        return write.response(lambda row: {"data": group_json(row)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        return (await self._groups.delete(request, _group_id(request))).response()

    async def save_access(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, frozenset(ACCESS_FIELDS))
        given = {name: data[name] for name in ("users", "conditions") if name in data}
        changes, warnings = await run_pure(self._database, is_large_json(given), read_group_changes, given)
        request.warnings.extend(warnings)
        write = await self._groups.change(request, _group_id(request), changes, Operation.GROUP_ACCESS)
        return write.response(lambda row: {"data": {name: group_json(row)[name] for name in ACCESS_FIELDS}})

    async def save_tags(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        tags = read_tags(data.get("tags"), ("data", "tags"))
        write = await self._groups.change(request, _group_id(request), {"tags": tags})
        return write.response(lambda row: {"data": group_json(row)})


def _group_id(request: PermissionRequest) -> str:
    return read_group_id(request.fields.get("group_id"), ("group_id",))
