"""POST /api/permissions/meta/schema and /roles (§2.7, §2.8, §4.9, §4.10)."""

import re
from typing import Any

from sso.core.field_errors import FieldError
from sso.perm.input.names import read_segment
from sso.perm.operations.roles import RoleOperations
from sso.perm.operations.schemas import SchemaOperations
from sso.perm.request import PermissionRequest
from sso.perm.stores.roles import FIELDS as STORED_FIELDS
from sso.perm.stores.roles import role_json

_VERSION = re.compile(r'"?([0-9]{1,18})"?', re.ASCII)


class SchemaEndpoint:
    def __init__(self, schemas: SchemaOperations) -> None:
        self._schemas = schemas

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        return request.response(data=await self._schemas.read(request.caller, request.application_id()))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        changes, roles = await self._schemas.parse(request, request.required_data())
        version = _read_version(request.if_match)
        write = await self._schemas.save(request, application_id, changes, roles, version)
        return write.response(lambda schema: {"data": schema})


def _read_version(if_match: str | None) -> int | None:
    """Returns the version in an If-Match header, or None if any version matches."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = _VERSION.fullmatch(if_match.strip())
    if match is None:
        raise FieldError(("If-Match",), "must be a version number or *")
    return int(match[1])


ROLE_FIELDS = frozenset(("name", *STORED_FIELDS, "application_id"))


class RoleEndpoint:
    def __init__(self, roles: RoleOperations) -> None:
        self._roles = roles

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        """Returns one role by name, or all roles of the application."""
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, ROLE_FIELDS)
        if "name" not in data:
            roles = await self._roles.read_all(request.caller, application_id)
            return request.response(data=[role_json(role) for role in roles])
        name = read_segment(data["name"], ("data", "name"))
        return request.response(data=role_json(await self._roles.read(request.caller, application_id, name)))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        changes = await self._roles.parse(request, request.required_data())
        write = await self._roles.save(request, application_id, changes)
        return write.response(lambda role: {"data": role_json(role)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, ROLE_FIELDS)
        name = read_segment(data.get("name"), ("data", "name"))
        return (await self._roles.delete(request, application_id, name)).response()
