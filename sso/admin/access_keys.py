"""/api/admin/access-keys: lists, creates and deletes access keys of applications. A value is shown only at creation."""

from collections.abc import Awaitable, Callable
from typing import Any

from sso.admin.answers.permissions import ACCESS_KEY
from sso.admin.permission_access import RecordAccess
from sso.admin.permission_bodies import AccessKeyChanges, NewAccessKey
from sso.admin.permission_resource import (
    management_context,
    permission_kind,
    require_root_to_choose,
    write_record,
)
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    JsonRecord,
    NoQuery,
    SearchQuery,
    etag,
    page_response,
    read_number_cursor,
    read_pair_cursor,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.transaction import Runner
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.reserved_names import is_segment
from sso.perm.input.field_types import ApplicationId
from sso.perm.operations.access_keys import AccessKeyOperations
from sso.perm.operations.writes import ManagementContext, OperationResult
from sso.perm.stores.access_keys import access_key_json, read_access_key
from sso.perm.stores.record_lists import access_key_page
from sso.perm.visibility import Visibility


class AccessKeyQuery(SearchQuery):
    application_id: ApplicationId | None = None


class AccessKeyResource:
    kind = permission_kind(
        "access key",
        "/access-keys",
        "/access-keys/<key_id>",
        AdminRight.VIEW_APPLICATIONS,
        AdminRight.MANAGE_APPLICATIONS,
        NewAccessKey,
        {"application_id": 10, "comment": "game server"},
        AccessKeyChanges,
        {"comment": "game server in Oslo"},
        {"id": "key_id", **dict.fromkeys(("application_id", "created", "modified", "last_used"), "")},
        AccessKeyQuery,
        create_query=NoQuery,
        change_query=NoQuery,
        delete_query=NoQuery,
        record=ACCESS_KEY,
    )

    def __init__(self, database: Database, keys: AccessKeyOperations, visibility: Visibility) -> None:
        self._database = database
        self._keys = keys
        self._access = RecordAccess(visibility, "application", Operation.ACCESS_KEY_LIST, AdminRight.VIEW_APPLICATIONS)

    async def list(self, request: AdminRequest) -> AdminResponse:
        query: AccessKeyQuery = request.query
        visible = await self._access.visible_at_application(request, query.application_id)
        after_id, after_key = read_pair_cursor(query.after)
        after = read_number_cursor(after_id, MAX_APPLICATION_ID), after_key
        rows = await access_key_page(
            self._database, visible, query.search, after, query.limit + 1, query.application_id
        )
        records = [access_key_json(row) for row in rows]
        return page_response(records, query.limit, lambda record: f"{record['application_id']}/{record['id']}")

    async def get(self, request: AdminRequest) -> AdminResponse:
        key = await self._require(request)
        return record_response(key, version=_version(key))

    async def create(self, request: AdminRequest) -> AdminResponse:
        """Returns the key with its value, ``hash``, which is not shown again."""
        body: NewAccessKey = request.body
        require_root_to_choose(request, "hash")
        async with self._access.hiding(request, body.application_id):
            try:
                write = await self._keys.add(
                    management_context(request), body.application_id, body.comment, body.hash or ""
                )
            except UniqueViolation:
                raise FieldError(("hash",), "is used by another access key", status=409) from None
        return AdminResponse(write.members(lambda key: {"data": key}), 201, {"ETag": etag(_version(write.result))})

    async def change(self, request: AdminRequest) -> AdminResponse:
        body: AccessKeyChanges = request.body
        return await self._write(
            request, lambda context, key: self._keys.change(context, key["application_id"], key["id"], body.comment)
        )

    async def delete(self, request: AdminRequest) -> AdminResponse:
        return await self._write(
            request, lambda context, key: self._keys.delete(context, key["application_id"], key["id"]), deleted=True
        )

    async def _write(
        self,
        request: AdminRequest,
        operate: Callable[[ManagementContext, JsonRecord], Awaitable[OperationResult[Any]]],
        *,
        deleted: bool = False,
    ) -> AdminResponse:
        key = await self._require(request)

        async def read(runner: Runner) -> JsonRecord:
            return _existing(await read_access_key(runner, key["id"]))

        return await write_record(
            request, self._database, lambda context: operate(context, key), read, deleted=deleted, version=_version
        )

    async def _require(self, request: AdminRequest) -> JsonRecord:
        """The key of the path. Raises NotFound if the caller may not see it."""
        visible = await self._access.visible(request)
        key_id = request.path["key_id"]
        key = _existing(await read_access_key(self._database, key_id) if is_segment(key_id) else None)
        if key["application_id"] not in visible:
            raise NotFound("access key not found")
        return key


def _existing(key: JsonRecord | None) -> JsonRecord:
    if key is None:
        raise NotFound("access key not found")
    return key


def _version(key: JsonRecord) -> JsonRecord:
    """The last use is no part of the version, since it changes every minute. Nor is the value, which is shown once."""
    return {name: value for name, value in key.items() if name not in ("hash", "last_used")}
