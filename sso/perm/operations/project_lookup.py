"""Finds the project that a request names by its id or an alias."""

from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.transaction import Row
from sso.perm.authorization import CallerRights
from sso.perm.engine.required_rights import Operation
from sso.perm.input.names import read_segment
from sso.perm.stores.projects import read_project, resolve_project_id


class ProjectLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_project_id(self, value: object, where: str = "data.id") -> str:
        """The id of the project with this id or alias; the name itself if there is no such project."""
        return await resolve_project_id(self._database, read_segment(value, where))

    async def require(self, rights: CallerRights, project_id: str, operation: Operation) -> Row:
        """The project, if the caller may do this to it. Only root learns that a project does not exist."""
        rights.require(operation, project_id=project_id)
        row = await read_project(self._database, project_id)
        if row is None:
            raise NotFound("project not found")
        return row
