"""POST /api/permissions/project, /project/membership, /publish and /user/info (§2.4, §4.6)."""

from typing import Any

from sso.perm.authorization import Authorizer
from sso.perm.input import validators
from sso.perm.input.membership import FIELDS as MEMBERSHIP_FIELDS
from sso.perm.input.membership import check_membership_shape
from sso.perm.input.names import project_id_from_title
from sso.perm.input.project import read_project_fields
from sso.perm.operations.lookups import ProjectLookup
from sso.perm.operations.members import MemberOperations
from sso.perm.operations.projects import ProjectOperations
from sso.perm.request import PermissionRequest
from sso.perm.stores.projects import project_json

READ_ONLY = frozenset(("id", "tags", "author", "created", "removed"))
FIELDS = READ_ONLY | {"title", "description", "aliases", "settings"}


class ProjectEndpoint:
    def __init__(self, operations: ProjectOperations, authorizer: Authorizer, projects: ProjectLookup) -> None:
        self._operations = operations
        self._authorizer = authorizer
        self._projects = projects

    async def user_info(self, request: PermissionRequest) -> dict[str, Any]:
        """Returns the number of projects whose author is the caller."""
        facts = request.facts or self._authorizer.facts
        return request.response(projects=await facts.count_authored(request.caller.user_id))

    async def publish(self, request: PermissionRequest) -> dict[str, Any]:
        title = request.text("project", 1024)
        project_id = project_id_from_title(title)
        admins = []
        if "user" in request.fields:
            admins = [validators.read_text(request.fields["user"], ("user",), 320, min_length=1)]
        write = await self._operations.create(request, project_id, {"title": title}, admins, publishes=True)
        return write.response(lambda row: {"data": project_json(row)})

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        return request.response(data=project_json(await self._operations.read(request.caller, project_id)))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        changes, warnings = read_project_fields(project_id, request.required_data())
        request.warnings.extend(warnings)
        write = await self._operations.change(request, project_id, changes)
        return write.response(lambda row: {"data": project_json(row)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        return (await self._operations.remove(request, await self._read_project_id(request))).response()

    async def _read_project_id(self, request: PermissionRequest) -> str:
        data = request.required_data()
        project_id = await self._projects.read_project_id(data.get("id"))
        request.warn_unknown(data, FIELDS)
        return project_id


class MembershipEndpoint:
    def __init__(self, operations: MemberOperations, projects: ProjectLookup) -> None:
        self._operations = operations
        self._projects = projects

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        return request.response(data=await self._operations.read(request.caller, project_id))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        data = request.required_data()
        check_membership_shape(data)
        write = await self._operations.save(request, project_id, data)
        return write.response(lambda membership: {"data": membership})

    async def _read_project_id(self, request: PermissionRequest) -> str:
        data = request.required_data()
        request.warn_unknown(data, MEMBERSHIP_FIELDS)
        return await self._projects.read_project_id(data.get("id"))
