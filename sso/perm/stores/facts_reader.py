"""The interface of all that loads the facts about users: from the database, with a cache, or with what was prefetched.

Each implementation wraps another one and answers the same, with fewer or smaller statements.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TypeAlias

import trio

from sso.core.net import Address
from sso.db.errors import DatabaseError
from sso.perm.stores.loaded_facts import LoadedFacts, RunInThread
from sso.perm.stores.past_facts import PastFacts

UserAt: TypeAlias = tuple[str, int]  # a user and an application


class FactsReader(ABC):
    past: PastFacts
    run_in_thread: RunInThread

    @abstractmethod
    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        """Returns None if the application does not exist; the user need not exist."""

    @abstractmethod
    async def load_pairs(self, pairs: Collection[UserAt], address: Address | None) -> dict[UserAt, LoadedFacts]:
        """Returns the facts about several users at applications, without applications that do not exist.

        If they have so much data that it should not be in memory together, some are left out: load these one by one.
        """

    @abstractmethod
    async def count_authored(self, user_id: str) -> int:
        """Returns how many projects the user is the author of."""

    def find(self, _user_id: str, _application_id: int, _address: Address | None) -> LoadedFacts | None:
        """Returns the facts if they are known without a statement."""
        return None

    async def load_many(self, user_id: str, addresses: Mapping[int, Address | None]) -> dict[int, LoadedFacts | None]:
        """Loads the facts at several applications concurrently, so that they share a statement.

        ``addresses`` has the address of the user for each application.
        """
        loaded: dict[int, LoadedFacts | None] = {}
        for application_id, address in addresses.items():
            if (known := self.find(user_id, application_id, address)) is not None:
                loaded[application_id] = known
        if len(loaded) == len(addresses):
            return loaded
        errors: list[DatabaseError] = []

        async def load(application_id: int) -> None:
            try:
                loaded[application_id] = await self.load(user_id, application_id, addresses[application_id])
            except DatabaseError as error:
                errors.append(error)  # raised below, because the nursery would wrap it in an ExceptionGroup

        async with trio.open_nursery() as nursery:
            for application_id in addresses.keys() - loaded.keys():
                nursery.start_soon(load, application_id)
        if errors:
            raise errors[0]
        return loaded
