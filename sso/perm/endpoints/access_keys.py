"""POST /api/permissions/accessKey (§2.6, §4.8)."""

from typing import Any

from sso.core.encryption import Keyring
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer
from sso.perm.engine.operations import Operation
from sso.perm.input import validators
from sso.perm.request import PermissionRequest
from sso.perm.stores.access_keys import add_access_key, delete_access_key, list_access_keys
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.locks import lock_application

FIELDS = frozenset(("id", "application_id", "comment", "created", "modified", "last_used"))


class AccessKeyEndpoint:
    def __init__(self, database: Database, authorizer: Authorizer, keyring: Keyring) -> None:
        self._database = database
        self._authorizer = authorizer
        self._keyring = keyring

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        self._read_comment(request, request.data)
        await self._authorize(request, application_id)
        return request.response(data=await list_access_keys(self._database, application_id))

    async def save(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        comment = self._read_comment(request, request.required_data())
        target = await self._authorize(request, application_id)
        key = await self._database.transaction(
            _add, request.caller.actor, self._keyring, application_id, target.project_id, comment
        )
        return request.response(data=key)

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        self._read_comment(request, data)
        key_id = validators.read_text(data.get("id"), "data.id", 64, min_length=1)
        target = await self._authorize(request, application_id)
        deleted = await self._database.transaction(
            delete_access_key, request.caller.actor, application_id, target.project_id, key_id
        )
        if not deleted:
            raise NotFound("access key not found")
        return request.response()

    def _read_comment(self, request: PermissionRequest, data: dict[str, Any]) -> str:
        request.warn_unknown(data, FIELDS)
        return validators.read_text(data.get("comment", ""), "data.comment", 256)

    async def _authorize(self, request: PermissionRequest, application_id: int) -> LoadedFacts:
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        return rights.require_on_target(Operation.ACCESS_KEY)


async def _add(
    tx: Transaction, actor: AuditActor, keyring: Keyring, application_id: int, project_id: str | None, comment: str
) -> dict[str, Any]:
    await lock_application(tx, application_id, project_id)
    return await add_access_key(tx, actor, keyring, application_id, project_id, comment)
