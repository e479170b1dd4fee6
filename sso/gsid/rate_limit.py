"""Rate limits of game sessions: new sessions, early polls and refused requests per minute, counted in the database.

All workers share the counters. A client is blocked for early polls only; the statements that read its session check
that. Refused requests block no address, because other clients may share it.
"""

from functools import lru_cache

from msgspec import Struct

from sso.core.ids import digest
from sso.core.net import Address, client_network
from sso.db.database import Database
from sso.db.rate_limit import EventCounter, RateLimiter
from sso.gsid.errors import TooManySessions

MAX_CACHED_ADDRESSES = 4096
MAX_RECORDED_REFUSALS = 100  # per address and minute; further ones share a record


class GameRateLimits(Struct, frozen=True):
    new_sessions: int  # per address and minute
    early_polls: int  # per client and minute
    block_s: int  # for too many early polls


class GameRateLimiter:
    def __init__(self, database: Database, limits: GameRateLimits) -> None:
        self._counter = EventCounter(database)
        self._new_sessions = RateLimiter(database, "getgsid", limits.new_sessions)
        self._limits = limits

    async def count_new_session(self, address: Address) -> None:
        """Raises TooManySessions if the address has registered too many sessions within a minute."""
        if wait_s := await self._new_sessions.add(address):
            raise TooManySessions(wait_s)

    async def count_early_poll(self, key: bytes, gsid: str) -> None:
        """Blocks the key if it has too many early polls within a minute.

        The first one of a session counts with the second one. A client that has lost a RETRY polls once without its
        delay; and all clients of an address may lose theirs when a node or a network fails.
        """
        number = (await self._counter.add(digest(f"early:{gsid}"))).number
        if number == 1 and self._limits.early_polls > 1:
            return
        for _ in range(2 if number == 2 else 1):
            await self._counter.add(key, self._limits.early_polls, float(self._limits.block_s))

    async def count_refusal(self, key: bytes) -> bool:
        """Returns False if the refusal must not get a record of its own."""
        return (await self._counter.add(key)).number <= MAX_RECORDED_REFUSALS


class AddressKeys(Struct, frozen=True):
    """The keys of an address's counters: early polls, which may block it, and refused requests."""

    early_polls: bytes
    refusals: bytes

    @classmethod
    @lru_cache(MAX_CACHED_ADDRESSES)
    def of(cls, address: Address) -> "AddressKeys":
        network = client_network(address)
        return cls(digest(f"poll:{network}"), digest(f"refused:{network}"))
