"""POST /api/permissions/accessKey (§2.6, §4.8)."""

from typing import Any

from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer
from sso.perm.credentials.access_keys import AccessKeys
from sso.perm.engine.operations import Operation
from sso.perm.input import validators
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores import roles as role_store

FIELDS = frozenset(("id", "application_id", "comment", "created", "modified", "last_used"))


class AccessKeyEndpoint:
    def __init__(self, database: Database, desk: Authorizer, keys: AccessKeys) -> None:
        self._database = database
        self._desk = desk
        self._keys = keys

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        action = call.action("get", "save", "delete")
        wanted = call.application_id()
        data = call.data if action == "get" else call.required_data()
        call.ignore_unknown(data, FIELDS)
        comment = validators.read_text(data.get("comment", ""), "data.comment", 256)
        key_id = validators.read_text(data.get("id"), "data.id", 64, min_length=1) if action == "delete" else ""
        standing = await self._desk.standing(call.caller, wanted)
        standing.require_here(Operation.ACCESS_KEY)
        project_id = standing.application.project_id
        if action == "get":
            return call.answer(data=await self._keys.list(wanted))

        async def add(tx: Transaction) -> dict[str, Any]:
            await role_store.lock_application(tx, wanted, project_id)
            key = await self._keys.add(tx, wanted, comment)
            await self._audit(tx, call, "access_key.create", key["id"], None, key, project_id, wanted)
            return key

        async def delete(tx: Transaction) -> None:
            old = await self._keys.delete(tx, wanted, key_id)
            if old is None:
                raise NotFound("access key not found")
            await self._audit(tx, call, "access_key.delete", key_id, old, None, project_id, wanted)

        if action == "save":
            return call.answer(data=await self._database.transaction(add))
        await self._database.transaction(delete)
        return call.answer()

    async def _audit(
        self,
        tx: Transaction,
        call: PermissionRequest,
        operation: str,
        key_id: str,
        old: Any,
        new: Any,
        project_id: str | None,
        application_id: int,
    ) -> None:
        await audit.write(
            tx, call.caller.actor, operation, key_id, old, new, project_id=project_id, application_id=application_id
        )
