"""POST /api/permissions/project/membership: roles of users in a project, and its allow and disallow lists (§4.6)."""

from typing import Any

from sso.core.errors import Forbidden
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.endpoints.permission_writes import PermissionWrites
from sso.perm.endpoints.project_lookup import ProjectLookup
from sso.perm.engine.required_rights import Operation
from sso.perm.input.membership import FIELDS, check_membership_shape
from sso.perm.request import PermissionRequest
from sso.perm.stores.memberships import read_membership, save_membership


class MembershipEndpoint:
    def __init__(
        self, database: Database, writes: PermissionWrites, authorizer: Authorizer, projects: ProjectLookup
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        rights = await self._authorizer.caller_rights(request.caller)
        await self._projects.require(rights, project_id, Operation.MEMBERSHIP_GET)
        return request.response(data=await read_membership(self._database, project_id))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        project_id = await self._read_project_id(request)
        data = request.required_data()
        check_membership_shape(data)
        rights = await self._authorizer.caller_rights(request.caller)
        project = await self._projects.require(rights, project_id, Operation.MEMBERSHIP_SAVE)
        if project["removed"]:
            raise Forbidden("removed")
        write = await self._writes.run(request, Scope.project(project_id), _save, request.caller, project_id, data)
        membership, warnings = write.result
        request.warnings.extend(warnings)
        return write.response(lambda _: {"data": membership})

    async def _read_project_id(self, request: PermissionRequest) -> str:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        return await self._projects.read_project_id(data.get("id"))


async def _save(
    tx: Transaction, caller: Caller, project_id: str, data: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    async with delegated_write(tx, caller, project_id):
        return await save_membership(tx, caller.actor, project_id, data)
