"""Finds users whom callers name by login. Each such lookup is audited, because its answer tells whether they exist."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.ids import is_user_id
from sso.db.database import Database


class TargetUser(Protocol):
    """A user who is to become a member or an administrator of a project."""

    @property
    def user_id(self) -> str: ...

    @property
    def second_factors(self) -> tuple[str, ...]: ...

    @property
    def disabled(self) -> bool: ...


FindUser = Callable[[str], Awaitable[TargetUser | None]]


class AccountLookup:
    def __init__(self, database: Database, find_user: FindUser) -> None:
        self._database = database
        self._find_user = find_user

    async def find(self, actor: AuditActor, name: str) -> TargetUser | None:
        """Returns the user with this id or login. The lookup of a login is audited even if nothing else is written."""
        user = await self._find_user(name)
        if not is_user_id(name):
            target = name if user is None else user.user_id
            await trail.write(self._database, actor, "user.lookup", target, None, {"found": user is not None})
        return user
