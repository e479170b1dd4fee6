"""The facts of recent requests, decoded, by version.

The version of facts is read in each request, so a cached value is never stale: it is used only if the database still
has the version that it was read with. The cache has a limited number of entries and of bytes, and so has an entry.
"""

from collections import OrderedDict
from typing import NamedTuple

from msgspec import Struct

from sso.core.net import Address
from sso.perm.stores.loaded_facts import LoadedFacts

MAX_ENTRIES = 4096
MAX_BYTES = 16 * 1024 * 1024  # estimated
LARGEST_ENTRIES = 4  # so many of the largest entries fill the cache: a larger one would displace too many others
MAX_ADDRESSES = 4  # of one user, at an application with conditions on addresses
ENTRY_BYTES = 4096  # an estimate of the objects of one entry, without the user's own data


class FactsVersion(NamedTuple):
    """The version of the facts about a user at an application. It changes with every row that they are read from."""

    rows: str  # the ids of the transactions that wrote the rows
    revision: int  # of the application
    epoch: int  # of the connections: after a failover, transactions that were lost may have had the same ids


class _Entry(Struct):
    version: FactsVersion
    loaded: LoadedFacts  # without an address
    by_address: OrderedDict[Address, LoadedFacts]
    counted_bytes: int = 0
    counted_changes: int = -1  # of the memos, when the bytes were counted
    dropped_changes: int = 0  # of addresses that others have replaced

    def changes(self) -> int:
        """Returns a number that grows when the size of the entry may have changed."""
        changes = self.loaded.memo.changes + len(self.by_address) + self.dropped_changes
        for loaded in self.by_address.values():
            changes += loaded.memo.changes
        return changes

    def drop_oldest_address(self) -> None:
        _, dropped = self.by_address.popitem(last=False)
        self.dropped_changes += dropped.memo.changes + 1


class FactsCache:
    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._entries: OrderedDict[tuple[str, int], _Entry] = OrderedDict()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._max_entry_bytes = max_bytes // LARGEST_ENTRIES
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        return self._bytes

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._entries

    def find(
        self, user_id: str, application_id: int, version: FactsVersion, address: Address | None
    ) -> LoadedFacts | None:
        """Returns the facts of this version, for a user at this address, or None if they are not cached."""
        key = user_id, application_id
        entry = self._entries.get(key)
        if entry is None or entry.version != version:
            return None
        self._entries.move_to_end(key)
        self._count(entry)
        if entry.counted_bytes > self._max_entry_bytes:
            self._remove(key)
        return _at_address(entry, address)

    def add(
        self, user_id: str, application_id: int, version: FactsVersion, loaded: LoadedFacts, address: Address | None
    ) -> LoadedFacts:
        """Adds facts without an address, unless they are too large, and returns them for a user at this address."""
        key = user_id, application_id
        self._remove(key)
        entry = self._entries[key] = _Entry(version, loaded, OrderedDict())
        self._count(entry)
        if entry.counted_bytes > self._max_entry_bytes:
            self._remove(key)
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))
        return _at_address(entry, address)

    def _remove(self, key: tuple[str, int]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.counted_bytes

    def _count(self, entry: _Entry) -> None:
        """Permissions are computed after the facts were added, so an entry grows."""
        changes = entry.changes()
        if changes == entry.counted_changes:
            return
        entry.counted_changes = changes
        size = ENTRY_BYTES + entry.loaded.estimated_bytes
        for loaded in entry.by_address.values():
            size += loaded.estimated_bytes
        if size != entry.counted_bytes:
            self._bytes += size - entry.counted_bytes
            entry.counted_bytes = size


def _at_address(entry: _Entry, address: Address | None) -> LoadedFacts:
    if address is None or not entry.loaded.application.depends_on_address:
        return entry.loaded
    loaded = entry.by_address.get(address)
    if loaded is None:
        loaded = entry.by_address[address] = entry.loaded.at_address(address)
        if len(entry.by_address) > MAX_ADDRESSES:
            entry.drop_oldest_address()
    return loaded
