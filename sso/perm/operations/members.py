"""Memberships of projects: the roles of users, and the allow and disallow lists (§4.6)."""

from typing import Any

from sso.core.errors import Forbidden
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.changes.scope import Scope
from sso.perm.delegation import delegated_write
from sso.perm.engine.required_rights import Operation
from sso.perm.operations.lookups import AccountLookup, ProjectLookup
from sso.perm.operations.writes import OperationContext, OperationResult, PermissionWrites
from sso.perm.stores.memberships import read_membership, save_membership


class MemberOperations:
    def __init__(
        self,
        database: Database,
        writes: PermissionWrites,
        authorizer: Authorizer,
        projects: ProjectLookup,
        accounts: AccountLookup,
    ) -> None:
        self._database = database
        self._writes = writes
        self._authorizer = authorizer
        self._projects = projects
        self._accounts = accounts

    async def read(self, caller: Caller, project_id: str) -> dict[str, Any]:
        rights = await self._authorizer.caller_rights(caller)
        await self._projects.require(rights, project_id, Operation.MEMBERSHIP_GET)
        return await read_membership(self._database, project_id)

    async def save(
        self, context: OperationContext, project_id: str, data: dict[str, Any]
    ) -> OperationResult[dict[str, Any]]:
        """Replaces the parts of the membership that ``data`` has: users, allow, disallow."""
        await self._authorize(context.caller, project_id)
        scope = Scope.project(project_id)
        write = await self._writes.run(context, scope, _save, context.caller, project_id, data)
        context.warnings.extend(write.result[1])
        return write.with_result(write.result[0])

    async def save_member(
        self, context: OperationContext, project_id: str, user_id: str, roles: dict[str, Any] | None
    ) -> OperationResult[None]:
        """Replaces the roles of one user in the project; with None, the user leaves it."""
        await self._authorize(context.caller, project_id)
        scope = Scope.project(project_id)
        write = await self._writes.run(context, scope, _save_member, context.caller, project_id, user_id, roles)
        context.warnings.extend(write.result)
        return write.with_result(None)

    async def find_user_id(self, caller: Caller, project_id: str, login: str) -> str:
        """Returns the id of the user with this login, for callers who may give users roles in the project."""
        await self._authorize(caller, project_id)
        user = await self._accounts.find(caller.actor, login)
        if user is None:
            raise FieldError(("login",), "there is no user with this login", status=404)
        return user.user_id

    async def _authorize(self, caller: Caller, project_id: str) -> None:
        rights = await self._authorizer.caller_rights(caller)
        if (await self._projects.require(rights, project_id, Operation.MEMBERSHIP_SAVE))["removed"]:
            raise Forbidden("removed")


async def _save(
    tx: Transaction, caller: Caller, project_id: str, data: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    async with delegated_write(tx, caller, project_id):
        return await save_membership(tx, caller.actor, project_id, data)


async def _save_member(
    tx: Transaction, caller: Caller, project_id: str, user_id: str, roles: dict[str, Any] | None
) -> list[str]:
    """The member comes first in the list, so that the location of an error can be told from those of other members."""
    async with delegated_write(tx, caller, project_id):
        stored = (await read_membership(tx, project_id))["users"]
        users = [user for user in stored if user["user_id"] != user_id]
        if roles is not None:
            users = [{"user_id": user_id, "roles": roles}, *users]
        try:
            saved, warnings = await save_membership(tx, caller.actor, project_id, {"users": users})
        except FieldError as error:
            raise error.without("users", 0) from None
        if roles is not None and all(user["user_id"] != user_id for user in saved["users"]):
            raise FieldError(("roles",), "must have a role")
        return [warning.removeprefix("users[0].") for warning in warnings]
