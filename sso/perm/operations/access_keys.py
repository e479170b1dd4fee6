"""Access keys of applications: list, add, change the comment, delete (§2.6)."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.engine.required_rights import Operation
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.access_keys import (
    add_access_key,
    delete_access_key,
    list_access_keys,
    read_access_key,
    set_access_key_comment,
)
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.locks import lock_revision

T = TypeVar("T")


class AccessKeyOperations:
    def __init__(self, database: Database, writes: PermissionWrites, authorizer: Authorizer, keyring: Keyring) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._keyring = keyring

    async def read_all(self, caller: Caller, application_id: int) -> list[dict[str, Any]]:
        await self._authorize(caller, application_id, Operation.ACCESS_KEY_LIST)
        return await list_access_keys(self._database, application_id)

    async def add(
        self, context: OperationContext, application_id: int, comment: str, value: str = ""
    ) -> OperationResult[dict[str, Any]]:
        """Adds a key with this value, or with a random one. The result has the value."""
        target = await self._authorize(context.caller, application_id)
        actor, project_id = context.caller.actor, target.project_id
        return await self._write(
            context,
            target,
            lambda tx: add_access_key(tx, actor, self._keyring, application_id, project_id, comment, value),
        )

    async def change(
        self, context: OperationContext, application_id: int, key_id: str, comment: str
    ) -> OperationResult[None]:
        target = await self._authorize(context.caller, application_id)
        actor = context.caller.actor
        return await self._write(
            context, target, lambda tx: _change(tx, actor, application_id, target.project_id, key_id, comment)
        )

    async def delete(self, context: OperationContext, application_id: int, key_id: str) -> OperationResult[bool]:
        target = await self._authorize(context.caller, application_id)
        actor = context.caller.actor
        write = await self._write(
            context, target, lambda tx: delete_access_key(tx, actor, application_id, target.project_id, key_id)
        )
        if not write.result:
            raise NotFound("access key not found")
        return write

    async def _authorize(
        self, caller: Caller, application_id: int, operation: Operation = Operation.ACCESS_KEY
    ) -> LoadedFacts:
        rights = await self._authorizer.caller_rights(caller, application_id)
        return rights.require_on_target(operation)

    async def _write(
        self, context: OperationContext, target: LoadedFacts, work: Callable[[Transaction], Awaitable[T]]
    ) -> OperationResult[T]:
        """Runs the work in a transaction with the application locked. Keys give no permissions to users."""
        application_id = target.application.application_id

        async def locked(tx: Transaction) -> T:
            await lock_revision(tx, application_id, target.project_id)
            return await work(tx)

        return await self._writes.run(context, Scope(read_applications=frozenset((application_id,))), locked)


async def _change(
    tx: Transaction, actor: AuditActor, application_id: int, project_id: str | None, key_id: str, comment: str
) -> None:
    key = await read_access_key(tx, key_id)
    if key is None or key["application_id"] != application_id:
        raise NotFound("access key not found")
    await set_access_key_comment(tx, actor, key, project_id, comment)
