"""Finds the users and projects that a request names."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import NotFound
from sso.core.field_errors import FieldPath
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.transaction import Row
from sso.perm.authorization import CallerRights
from sso.perm.engine.required_rights import Operation
from sso.perm.input.names import read_segment
from sso.perm.stores.projects import read_project, resolve_project_id


class TargetUser(Protocol):
    """A user whom a request names, such as one who is to become a member or an administrator of a project."""

    @property
    def user_id(self) -> str: ...

    @property
    def login_key(self) -> str: ...

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


class ProjectLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_project_id(self, value: object, path: FieldPath = ("data", "id")) -> str:
        """The id of the project with this id or alias; the name itself if there is no such project."""
        return await resolve_project_id(self._database, read_segment(value, path))

    async def require(self, rights: CallerRights, project_id: str, operation: Operation) -> Row:
        """The project, if the caller may do this to it. Only root learns that a project does not exist."""
        rights.require(operation, project_id=project_id)
        row = await read_project(self._database, project_id)
        if row is None:
            raise NotFound("project not found")
        return row
