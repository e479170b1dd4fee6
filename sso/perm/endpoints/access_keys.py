"""POST /api/permissions/accessKey (§2.6, §4.8)."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer
from sso.perm.changes.scope import Scope
from sso.perm.endpoints.permission_writes import EndpointWrite, PermissionWrites
from sso.perm.engine.required_rights import Operation
from sso.perm.input import validators
from sso.perm.request import PermissionRequest
from sso.perm.stores.access_keys import (
    add_access_key,
    delete_access_key,
    list_access_keys,
    read_access_key,
    set_access_key_comment,
)
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.locks import lock_application

T = TypeVar("T")
FIELDS = frozenset(("id", "application_id", "comment", "created", "modified", "last_used"))


class AccessKeyEndpoint:
    def __init__(self, database: Database, writes: PermissionWrites, authorizer: Authorizer, keyring: Keyring) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._keyring = keyring

    async def get(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        self._read_comment(request, request.data)
        await self._authorize(request, application_id, Operation.ACCESS_KEY_LIST)
        return request.response(data=await list_access_keys(self._database, application_id))

    async def save(self, request: PermissionRequest, value: str = "") -> dict[str, Any]:
        """Adds a key with this value, or with a random one."""
        application_id = request.application_id()
        comment = self._read_comment(request, request.required_data())
        target = await self._authorize(request, application_id)
        write = await self._write(
            request,
            target,
            lambda tx: add_access_key(
                tx, request.caller.actor, self._keyring, application_id, target.project_id, comment, value
            ),
        )
        return write.response(lambda key: {"data": key})

    async def save_comment(self, request: PermissionRequest) -> dict[str, Any]:
        """Changes the comment of a key, for the management API."""
        application_id = request.application_id()
        data = request.required_data()
        comment = self._read_comment(request, data)
        key_id = validators.read_text(data.get("id"), ("data", "id"), 64, min_length=1)
        target = await self._authorize(request, application_id)
        write = await self._write(
            request,
            target,
            lambda tx: _set_comment(tx, request.caller.actor, application_id, target.project_id, key_id, comment),
        )
        return write.response()

    async def delete(self, request: PermissionRequest) -> dict[str, Any]:
        application_id = request.application_id()
        data = request.required_data()
        self._read_comment(request, data)
        key_id = validators.read_text(data.get("id"), ("data", "id"), 64, min_length=1)
        target = await self._authorize(request, application_id)
        write = await self._write(
            request,
            target,
            lambda tx: delete_access_key(tx, request.caller.actor, application_id, target.project_id, key_id),
        )
        if not write.result:
            raise NotFound("access key not found")
        return write.response()

    async def _write(
        self, request: PermissionRequest, target: LoadedFacts, work: Callable[[Transaction], Awaitable[T]]
    ) -> EndpointWrite[T]:
        """Run the work in a transaction with the application locked. Keys give no permissions to users."""

        application_id = target.application.application_id

        async def locked(tx: Transaction) -> T:
            await lock_application(tx, application_id, target.project_id)
            return await work(tx)

        return await self._writes.run(request, Scope(read_applications=frozenset((application_id,))), locked)

    def _read_comment(self, request: PermissionRequest, data: dict[str, Any]) -> str:
        request.warn_unknown(data, FIELDS)
        return validators.read_text(data.get("comment", ""), ("data", "comment"), 256)

    async def _authorize(
        self, request: PermissionRequest, application_id: int, operation: Operation = Operation.ACCESS_KEY
    ) -> LoadedFacts:
        rights = await self._authorizer.caller_rights(request.caller, application_id)
        return rights.require_on_target(operation)


async def _set_comment(
    tx: Transaction, actor: AuditActor, application_id: int, project_id: str | None, key_id: str, comment: str
) -> None:
    key = await read_access_key(tx, key_id)
    if key is None or key["application_id"] != application_id:
        raise NotFound("access key not found")
    await set_access_key_comment(tx, actor, key, project_id, comment)
