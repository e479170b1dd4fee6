"""Rate limits: counters in the database, the same for all workers.

A counter is a row of ``throttle``. Every statement that counts uses :func:`count_events`, so that all counters follow
the same rules: :class:`EventCounter` and :class:`RateLimiter` here, and logins (:mod:`sso.accounts.login.rate_limit`).
Logins have statements of their own around it, because they check and lock several counters in the statement that
counts.
"""

from typing import NamedTuple

from sso.core.ids import digest
from sso.core.net import SITE_FACTOR, Address, Network, client_networks
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.telemetry.counters import THROTTLED_REQUESTS

NO_LIMIT = 2**31 - 1
MAX_BACKOFF_S = 60
FORGET_BACKOFF_S = 900  # a backoff counter starts again from 0 after this time without an event


def _blocked_until(count: str, start: str, previous: str) -> str:
    """Returns SQL: when a counter with ``count`` events in the window that began at ``start`` is free again."""
    return f"""CASE WHEN {count} < max_events THEN {previous}
        WHEN backoff THEN now() + make_interval(secs => least({MAX_BACKOFF_S}, 2.0 ^ least({count} - max_events, 30)))
        ELSE greatest({previous}, coalesce(now() + make_interval(secs => block_s), {start} + interval '60 s')) END"""


_LIFE_S = f"CASE WHEN backoff THEN {FORGET_BACKOFF_S} ELSE 60 + coalesce(block_s, 0) END"
_EXPIRES = f"now() + make_interval(secs => {_LIFE_S})"


def count_events(events: str) -> str:
    """Returns the INSERT that counts events; the caller may add WHERE and RETURNING.

    ``events`` is a CTE with one row for each counter: ``key``, ``added`` (how many events happened), ``max_events``
    (the number that blocks the counter), ``block_s`` and ``backoff``. A counter counts the events of a minute. It is
    blocked for ``block_s``, or until the minute ends if that is NULL. With ``backoff`` it counts beyond the minute, and
    each event from ``max_events`` on doubles the time for which it is blocked. Rows are locked in key order to avoid
    deadlocks.
    """
    return f"""INSERT INTO throttle AS t (key, failures, since, blocked_until, expires)
        SELECT key, added, now(), {_blocked_until("added", "now()", "'-infinity'")}, {_EXPIRES}
        FROM {events} ORDER BY key
        ON CONFLICT (key) DO UPDATE SET (failures, since, blocked_until, expires) = (
            SELECT count, start, {_blocked_until("count", "start", "t.blocked_until")}, {_EXPIRES}
            FROM (
                SELECT max_events, block_s, backoff,
                    CASE WHEN is_over THEN 0 ELSE t.failures END + excluded.failures AS count,
                    CASE WHEN is_over THEN now() ELSE t.since END AS start
                FROM (
                    SELECT *, CASE WHEN backoff THEN t.expires ELSE t.since + interval '60 s' END < now() AS is_over
                    FROM {events} WHERE key = t.key
                ) counter
            ) counted
        )"""


_COUNT = BatchStatement(
    f"""WITH item AS (
        SELECT *, count(*) OVER (PARTITION BY key) AS added, row_number() OVER (PARTITION BY key ORDER BY n) AS position
        FROM {{items}}
    ), events AS (
        SELECT DISTINCT ON (key) key, added, max_events, block_s, false AS backoff FROM item ORDER BY key
    ), counted AS (
        {count_events("events")} RETURNING key, failures, since
    )
    SELECT item.n, c.failures - item.added + item.position AS count,
        CAST(ceil(extract(epoch FROM c.since + interval '60 s' - now())) AS int) AS left_s
    FROM item JOIN counted c USING (key)""",
    columns={"key": "bytea", "max_events": "int", "block_s": "float"},
)


# A turn is the first event after a pause: the key is then blocked for the pause. Of concurrent callers, one gets it.
_CLAIM_TURN = Statement(
    f"""WITH events AS (
        SELECT CAST(:key AS bytea) AS key, 1 AS added, 1 AS max_events, CAST(:pause AS float) AS block_s,
            false AS backoff
    ), claimed AS (
        {count_events("events")} WHERE t.blocked_until <= now() RETURNING key
    )
    SELECT key FROM claimed"""
)
_TURN_WAIT = Statement(
    """SELECT CAST(ceil(extract(epoch FROM blocked_until - now())) AS int) FROM throttle
    WHERE key = :key AND blocked_until > now()"""
)


async def claim_turn(runner: Runner, name: str, pause_s: int) -> bool:
    """Returns True if the last turn of this name was at least ``pause_s`` seconds ago, and makes this the last one."""
    return await runner.value(_CLAIM_TURN, key=digest(name), pause=float(pause_s)) is not None


async def turn_wait(runner: Runner, name: str) -> int:
    """Returns the seconds until the next turn of this name; 0 if it can be claimed now."""
    return await runner.value(_TURN_WAIT, key=digest(name)) or 0


class Count(NamedTuple):
    number: int  # counts the events of a minute, this one included
    seconds_left: int  # until that minute ends


class EventCounter:
    """Counts events per key and minute. Concurrent calls share a statement."""

    def __init__(self, database: Database) -> None:
        self._count = Batch(database, _COUNT)

    async def add(self, key: bytes, max_events: int = NO_LIMIT, block_s: float = 0.0) -> Count:
        """Counts an event. The ``max_events``-th event within a minute blocks the key for ``block_s``."""
        row = await self._count(key=key, max_events=max_events, block_s=block_s)
        assert row is not None
        return Count(row["count"], max(1, row["left_s"]))


class RateLimiter:
    """Limits events of one kind per minute and client: an IPv4 address or an IPv6 /64. A limit of 0 means no limit.

    All the /64 networks of one IPv6 /48 together have ``SITE_FACTOR`` times the limit.
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
        if site is not None and not wait_s:
            wait_s = await self._count(site, self._per_minute * SITE_FACTOR)
        if wait_s:
            THROTTLED_REQUESTS.add(self._name)
        return wait_s

    async def add_subject(self, subject: str) -> int:
        """Like `add`, for a subject that is not an address, such as ``user 1001``. It has the limit for itself."""
        if not self._per_minute:
            return 0
        wait_s = await self._count(subject, self._per_minute)
        if wait_s:
            THROTTLED_REQUESTS.add(self._name)
        return wait_s

    async def _count(self, subject: Address | Network | str, limit: int) -> int:
        count = await self._counter.add(digest(f"{self._name}:{subject}"))
        return count.seconds_left if count.number > limit else 0


_COUNT_IN_WINDOW = Statement(
    """WITH counted AS (
        INSERT INTO throttle AS t (key, failures, since, blocked_until, expires)
        VALUES (:key, 1, now(), '-infinity', now() + make_interval(secs => :window))
        ON CONFLICT (key) DO UPDATE SET (failures, since, expires) = (
            SELECT CASE WHEN t.expires < now() THEN 1 ELSE t.failures + 1 END,
                CASE WHEN t.expires < now() THEN now() ELSE t.since END,
                CASE WHEN t.expires < now() THEN excluded.expires ELSE t.expires END
        ) WHERE t.expires < now() OR t.failures < :max_events
        RETURNING key
    )
    SELECT CASE WHEN EXISTS (SELECT FROM counted) THEN 0 ELSE coalesce((
        SELECT greatest(1, CAST(ceil(extract(epoch FROM expires - now())) AS int)) FROM throttle WHERE key = :key
    ), 1) END"""
)


class WindowLimiter:
    """Limits events of one kind per subject, such as mails to one address, within a window that may be long."""

    def __init__(self, name: str, max_events: int, window_s: int) -> None:
        self._name = name
        self._max_events = max_events
        self._window_s = window_s

    async def add(self, tx: Runner, subject: str) -> int:
        """Counts an event and returns 0. Beyond the limit it counts nothing and returns the seconds to wait."""
        wait_s: int = await tx.value(
            _COUNT_IN_WINDOW,
            key=digest(f"{self._name}:{subject}"),
            max_events=self._max_events,
            window=float(self._window_s),
        )
        if wait_s:
            THROTTLED_REQUESTS.add(self._name)
        return wait_s
