"""POST /api/permissions/application, its tags, and /accessKey (§2.3, §2.6, §4.4, §4.8)."""

from typing import Any

from sso.perm.input import validators
from sso.perm.input.access_keys import AccessKeyFields
from sso.perm.input.application import read_application_fields
from sso.perm.input.model import read_record
from sso.perm.input.names import read_application_id
from sso.perm.input.tags import read_tags
from sso.perm.operations.access_keys import AccessKeyOperations
from sso.perm.operations.applications import ApplicationOperations
from sso.perm.request import PermissionRequest
from sso.perm.stores.applications import application_json

# A save ignores these fields silently: clients send them back as a get returned them.
READ_ONLY = frozenset(("application_id", "removed", "created", "version", "updated_at"))
FIELDS = READ_ONLY | {"name", "description", "project_id", "settings", "service_meta"}
OPTIONS = frozenset(("full",))


class ApplicationEndpoint:
    def __init__(self, applications: ApplicationOperations) -> None:
        self._applications = applications

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = self._read_application_id(request)
        request.warn_unknown(request.options, OPTIONS, ("options",))
        full = validators.read_flag(request.options.get("full", False), ("options", "full"))
        row = await self._applications.read(request.caller, application_id, full=full)
        more = {"settings": row["settings"], "service_meta": row["service_meta"]} if full else {}
        return request.response(data=application_json(row) | more)

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        changes, warnings = read_application_fields(data)
        request.warnings.extend(warnings)
        if "application_id" in data:
            application_id = read_application_id(data["application_id"], ("data", "application_id"))
            write = await self._applications.change(request, application_id, changes)
        else:
            write = await self._applications.create(request, changes)
        return write.response(lambda row: {"data": application_json(row)})

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        return (await self._applications.remove(request, self._read_application_id(request))).response()

    async def save_tags(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        request.warn_unknown(data, frozenset(("tags",)))
        changes = {"service_meta": {"tags": read_tags(data.get("tags"), ("data", "tags"))}}
        write = await self._applications.change(request, application_id, changes)
        return write.response(lambda row: {"data": application_json(row)})

    def _read_application_id(self, request: PermissionRequest) -> int:
        data = request.required_data()
        request.warn_unknown(data, FIELDS)
        return read_application_id(data.get("application_id"), ("data", "application_id"))


KEY_FIELDS = frozenset(("id", "application_id", "comment", "created", "modified", "last_used"))


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
        key_id = validators.read_text(data.get("id"), ("data", "id"), 64, min_length=1)
        return (await self._keys.delete(request, application_id, key_id)).response()

    def _read_comment(self, request: PermissionRequest, data: dict[str, Any]) -> str:
        request.warn_unknown(data, KEY_FIELDS)
        return str(read_record(AccessKeyFields, data, ("data",))[0].get("comment", ""))
