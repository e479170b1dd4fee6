"""POST /api/permissions/meta/schema (§2.8, §4.10)."""

import re
from typing import Any

from sso.perm.errors import InvalidInput
from sso.perm.operations.schemas import SchemaOperations
from sso.perm.request import PermissionRequest

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
        raise InvalidInput("If-Match: must be a version number or *")
    return int(match[1])
