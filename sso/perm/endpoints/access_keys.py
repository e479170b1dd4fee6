"""POST /api/permissions/accessKey (§2.6, §4.8)."""

from typing import Any

from sso.perm.input import validators
from sso.perm.operations.access_keys import AccessKeyOperations
from sso.perm.request import PermissionRequest

FIELDS = frozenset(("id", "application_id", "comment", "created", "modified", "last_used"))


class AccessKeyEndpoint:
    def __init__(self, keys: AccessKeyOperations) -> None:
        self._keys = keys

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        self._read_comment(request, request.data)
        return request.response(data=await self._keys.read_all(request.caller, application_id))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        comment = self._read_comment(request, request.required_data())
        write = await self._keys.add(request, application_id, comment)
        return write.response(lambda key: {"data": key})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        self._read_comment(request, data)
        key_id = validators.read_text(data.get("id"), "data.id", 64, min_length=1)
        return (await self._keys.delete(request, application_id, key_id)).response()

    def _read_comment(self, request: PermissionRequest, data: dict[str, Any]) -> str:
        request.warn_unknown(data, FIELDS)
        return validators.read_text(data.get("comment", ""), "data.comment", 256)
