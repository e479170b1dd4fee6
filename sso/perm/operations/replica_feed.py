"""Reads what replicas of an application keep: its definition, and rows of users."""

from collections.abc import Sequence

from sso.core.errors import NotFound
from sso.db.database import Database
from sso.perm.stores.replica_rows import (
    NamedAttributes,
    ReplicaDefinition,
    ReplicaUsers,
    read_definition,
    read_page,
    read_users,
    read_version,
)

MAX_CACHED_APPLICATIONS = 1000


class ReplicaFeed:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._attributes: dict[int, tuple[str, NamedAttributes]] = {}  # by application, with the version

    async def definition(self, application_id: int) -> ReplicaDefinition:
        """Raises NotFound."""
        definition = await read_definition(self._database, application_id)
        if definition is None:
            raise NotFound("application not found")
        if len(self._attributes) >= MAX_CACHED_APPLICATIONS:
            self._attributes.clear()
        self._attributes[application_id] = definition.version, definition.attributes
        return definition

    async def page(self, application_id: int, after: str, limit: int) -> tuple[str, ReplicaUsers]:
        """Returns the version of the definition that the rows belong to, and the users after this one."""
        version, attributes = await self._current(application_id)
        return version, await read_page(self._database, application_id, attributes, after, limit)

    async def users(
        self, application_id: int, user_ids: Sequence[str], *, whole: bool = False
    ) -> tuple[str, ReplicaUsers]:
        """Returns the version of the definition that the rows belong to, and the users that exist, in this order.

        They are as many as fit into a page; with ``whole``, all of them.
        """
        version, attributes = await self._current(application_id)
        return version, await read_users(self._database, application_id, attributes, user_ids, whole=whole)

    async def _current(self, application_id: int) -> tuple[str, NamedAttributes]:
        version, known = await read_version(self._database, application_id), self._attributes.get(application_id)
        if known is not None and known[0] == version:
            return known
        definition = await self.definition(application_id)
        return definition.version, definition.attributes
