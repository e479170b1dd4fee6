"""Facts from the cache of this worker. Each request reads their version, or has read it ahead.

Cached facts are used only in the version that the request has read. So every request that starts after the commit of a
change sees it, on every worker, without notifications between workers.
"""

from collections.abc import Collection

from sso.core.net import Address
from sso.perm.stores.facts import StoredFacts, VersionedFacts
from sso.perm.stores.facts_cache import FactsCache, FactsVersion
from sso.perm.stores.facts_reader import FactsReader, UserAt
from sso.perm.stores.loaded_facts import LoadedFacts


class CachedFacts(FactsReader):
    def __init__(self, stored: StoredFacts) -> None:
        self.stored = stored
        self.cache = FactsCache()
        self.past = stored.past
        self.run_in_thread = stored.run_in_thread

    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        if (user_id, application_id) in self.cache:
            version = await self.stored.read_version(user_id, application_id)
            if version is not None and (known := self.cache.find(user_id, application_id, version, address)):
                return known
        return await self.read(user_id, application_id, address)

    async def load_pairs(self, pairs: Collection[UserAt], address: Address | None) -> dict[UserAt, LoadedFacts]:
        return await PrefetchedFacts(self, {}).load_pairs(pairs, address)

    async def count_authored(self, user_id: str) -> int:
        return await self.stored.count_authored(user_id)

    async def read(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        """Reads the facts, which are cached from now on."""
        read = await self.stored.read(user_id, application_id)
        return None if read is None else self.add(user_id, application_id, read, address)

    def add(self, user_id: str, application_id: int, read: VersionedFacts, address: Address | None) -> LoadedFacts:
        if read.version is None:
            return read.loaded.at_address(address)
        return self.cache.add(user_id, application_id, read.version, read.loaded, address)


class PrefetchedFacts(FactsReader):
    """Cached facts for one request that has read their versions ahead, and remembers those that it reads later.

    A request that writes must not use it afterwards: it would not see its own changes.
    """

    def __init__(
        self,
        cached: CachedFacts,
        versions: dict[UserAt, FactsVersion],
        authored: dict[str, int] | None = None,
        revision: int | None = None,
    ) -> None:
        """``authored`` is the number of projects of users, and ``revision`` the end of the change stream, if the
        request has read them."""
        self._cached = cached
        self._versions = versions
        self._authored = authored or {}
        self.revision = revision  # when the oldest facts were read; None before that
        self.past = cached.past
        self.run_in_thread = cached.run_in_thread

    def find(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        version = self._versions.get((user_id, application_id))
        return None if version is None else self._cached.cache.find(user_id, application_id, version, address)

    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        if (user_id, application_id) not in self._versions:
            return await self._cached.load(user_id, application_id, address)
        return self.find(user_id, application_id, address) or await self._cached.read(user_id, application_id, address)

    async def load_pairs(self, pairs: Collection[UserAt], address: Address | None) -> dict[UserAt, LoadedFacts]:
        """One statement reads the versions that are not known, and one more the facts that are not cached."""
        cached = self._cached
        if unknown := [pair for pair in pairs if pair not in self._versions and pair in cached.cache]:
            versions, revision = await cached.stored.read_versions(unknown)
            self._versions |= versions
            self._state(revision)
        loaded = {pair: known for pair in pairs if (known := self.find(*pair, address)) is not None}
        if missing := [pair for pair in pairs if pair not in loaded]:
            for pair, read in (await cached.stored.read_pairs(missing)).items():
                loaded[pair] = cached.add(*pair, read, address)
                self._state(read.position)
                if read.version is not None:
                    self._versions[pair] = read.version
        return loaded

    def _state(self, revision: int | None) -> None:
        """The smallest revision counts: what is read later is newer, unless another server has taken over."""
        if revision is not None:
            self.revision = revision if self.revision is None else min(self.revision, revision)

    async def count_authored(self, user_id: str) -> int:
        authored = self._authored.get(user_id)
        return await self._cached.count_authored(user_id) if authored is None else authored
