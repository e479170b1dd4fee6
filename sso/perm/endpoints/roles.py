"""POST /api/permissions/roles (§2.7, §4.9)."""

from typing import Any

from sso.perm.input.names import read_segment
from sso.perm.operations.roles import RoleOperations
from sso.perm.request import PermissionRequest
from sso.perm.stores.roles import FIELDS as ROLE_FIELDS
from sso.perm.stores.roles import role_json

FIELDS = frozenset(("name", *ROLE_FIELDS, "application_id"))


class RoleEndpoint:
    def __init__(self, roles: RoleOperations) -> None:
        self._roles = roles

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        """Returns one role by name, or all roles of the application."""
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        if "name" not in data:
            roles = await self._roles.read_all(request.caller, application_id)
            return request.response(data=[role_json(role) for role in roles])
        name = read_segment(data["name"], "data.name")
        return request.response(data=role_json(await self._roles.read(request.caller, application_id, name)))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        changes = await self._roles.parse(request, request.required_data())
        write = await self._roles.save(request, application_id, changes)
        return write.response(lambda role: {"data": role_json(role)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        name = read_segment(data.get("name"), "data.name")
        return (await self._roles.delete(request, application_id, name)).response()
