"""Events counted by the minute in the database, the same for all workers; concurrent counts share a statement."""

from typing import NamedTuple

from sso.core.ids import digest
from sso.core.net import SITE_FACTOR, Address, Network, client_networks
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database

NEVER = 2**31 - 1

_COUNT = BatchStatement(
    """
    WITH item AS (
        SELECT *, count(*) OVER (PARTITION BY key) AS together, row_number() OVER (PARTITION BY key ORDER BY n) AS place
        FROM {items}
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
    """,
    columns={"key": "bytea", "most": "int", "block": "float"},
)


class Count(NamedTuple):
    number: int  # of this event within its minute
    seconds_left: int  # of that minute


class EventCounter:
    def __init__(self, database: Database) -> None:
        self._count = Batch(database, _COUNT)

    async def add(self, key: bytes, block_after: int = NEVER, block_s: float = 0.0) -> Count:
        """Counts an event, and blocks the key for ``block_s`` if it is the ``block_after``-th within a minute."""
        row = await self._count(key=key, most=block_after, block=block_s)
        assert row is not None
        return Count(row["count"], max(1, row["left_s"]))


class RateLimiter:
    """So many events of one kind per minute and client: an IPv4 address or an IPv6 /64. 0 means no limit.

    All the /64 of one IPv6 /48 have ``SITE_FACTOR`` times as many.
    """

    def __init__(self, database: Database, name: str, per_minute: int) -> None:
        self._counter = EventCounter(database)
        self._name = name
        self._per_minute = per_minute

    async def add(self, address: Address) -> int:
        """Counts an event. Returns 0 if it is within the limit, otherwise the seconds to wait."""
        if not self._per_minute:
            return 0
        network, site = client_networks(address)
        wait_s = await self._count(network, self._per_minute)
        if site is None or wait_s:
            return wait_s
        return await self._count(site, self._per_minute * SITE_FACTOR)

    async def _count(self, network: Address | Network, limit: int) -> int:
        count = await self._counter.add(digest(f"{self._name}:{network}"))
        return count.seconds_left if count.number > limit else 0
