"""How often is too often: new sessions, early polls and refused requests, counted by the minute in the database.

Counts are the same for all workers. A client that is blocked for early polls is found out with the session it asks
for, in the same statement; this file only counts. Refused requests block nobody: who asks rightly from an address has
nothing to do with those who do not.
"""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network

from sso.core.ids import digest
from sso.core.net import Address
from sso.db.batch import Batch
from sso.db.bridge import Database
from sso.db.statement import Statement
from sso.gsid.errors import TooManySessions

ADDRESSES_MOST = 4096  # remembered
REFUSALS = 100  # of one address in a minute that have a record each
NEVER = 2**31 - 1

_COUNT = Statement(
    """
    WITH item AS (
        SELECT *, count(*) OVER (PARTITION BY key) AS together, row_number() OVER (PARTITION BY key ORDER BY n) AS place
        FROM unnest(CAST(:keys AS bytea[]), CAST(:limits AS int[]), CAST(:blocks AS float[]))
            WITH ORDINALITY AS item (key, most, block, n)
    ), counted AS (
        INSERT INTO throttle AS t (key, failures, since, blocked_until, expires)
        SELECT DISTINCT ON (key) key, together, now(),
            CASE WHEN together >= most THEN now() + make_interval(secs => block) ELSE '-infinity' END,
            now() + make_interval(secs => 60 + block)
        FROM item ORDER BY key
        ON CONFLICT (key) DO UPDATE SET (failures, since, blocked_until, expires) = (
            SELECT n, s, CASE WHEN n >= most THEN greatest(t.blocked_until, now() + make_interval(secs => block))
                ELSE t.blocked_until END, excluded.expires
            FROM (
                SELECT most, block,
                    CASE WHEN t.since < now() - interval '60 s' THEN 0 ELSE t.failures END + excluded.failures AS n,
                    CASE WHEN t.since < now() - interval '60 s' THEN now() ELSE t.since END AS s
                FROM item WHERE item.key = excluded.key LIMIT 1
            ) x
        )
        RETURNING key, failures, since
    )
    SELECT item.n, c.failures - item.together + item.place AS count,
        CAST(ceil(extract(epoch FROM c.since + interval '60 s' - now())) AS int) AS left_s
    FROM item JOIN counted c USING (key)
    """
)


@dataclass(frozen=True)
class Limits:
    new_sessions: int
    strikes: int
    block_s: int


class Counts:
    def __init__(self, database: Database, limits: Limits) -> None:
        self._count = Batch(database, _COUNT)
        self._limits = limits

    async def new_session(self, address: Address) -> None:
        """TooManySessions, beyond what an address may register in a minute."""
        most = self._limits.new_sessions
        if most:
            row = await self._count(digest(f"getgsid:{network_of(address)}"), NEVER, 0.0)
            assert row is not None
            if row["count"] > most:
                raise TooManySessions(max(1, row["left_s"]))

    async def early_poll(self, key: bytes) -> None:
        await self._count(key, self._limits.strikes, float(self._limits.block_s))

    async def refused(self, key: bytes) -> bool:
        """False, beyond what is written down one by one."""
        row = await self._count(key, NEVER, 0.0)
        return row is not None and row["count"] <= REFUSALS


@dataclass(frozen=True)
class AddressKeys:
    """Under which an address is counted: its early polls, for which it may be blocked, and its refused requests."""

    early: bytes
    refused: bytes

    @classmethod
    @lru_cache(ADDRESSES_MOST)
    def of(cls, address: Address) -> "AddressKeys":
        network = network_of(address)
        return cls(digest(f"poll:{network}"), digest(f"refused:{network}"))


def network_of(address: Address) -> object:
    """Whoever has one IPv6 address commonly has the 2^64 of its network."""
    return ip_network((address, 64), strict=False) if address.version == 6 else address
