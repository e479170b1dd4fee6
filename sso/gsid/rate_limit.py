"""How often is too often: new sessions, early polls and refused requests, counted by the minute in the database.

Counts are the same for all workers. A client that is blocked for early polls is found out with the session it asks
for, in the same statement; this file only counts. Refused requests block nobody: who asks rightly from an address has
nothing to do with those who do not.
"""

from dataclasses import dataclass
from functools import lru_cache

from sso.core.ids import digest
from sso.core.net import Address, client_network
from sso.db.database import Database
from sso.db.rate_limit import EventCounter, RateLimiter
from sso.gsid.errors import TooManySessions

MAX_ADDRESSES = 4096  # remembered
REFUSALS = 100  # of one address in a minute that have a record each


@dataclass(frozen=True)
class GameRateLimits:
    new_sessions: int
    strikes: int
    block_s: int


class GameRateLimiter:
    def __init__(self, database: Database, limits: GameRateLimits) -> None:
        self._counter = EventCounter(database)
        self._new_sessions = RateLimiter(database, "getgsid", limits.new_sessions)
        self._limits = limits

    async def new_session(self, address: Address) -> None:
        """TooManySessions, beyond what an address may register in a minute."""
        if wait_s := await self._new_sessions.add(address):
            raise TooManySessions(wait_s)

    async def early_poll(self, key: bytes) -> None:
        await self._counter.add(key, self._limits.strikes, float(self._limits.block_s))

    async def refused(self, key: bytes) -> bool:
        """False, beyond what is written down one by one."""
        return (await self._counter.add(key)).number <= REFUSALS


@dataclass(frozen=True)
class AddressKeys:
    """Under which an address is counted: its early polls, for which it may be blocked, and its refused requests."""

    early: bytes
    refused: bytes

    @classmethod
    @lru_cache(MAX_ADDRESSES)
    def of(cls, address: Address) -> "AddressKeys":
        network = client_network(address)
        return cls(digest(f"poll:{network}"), digest(f"refused:{network}"))
