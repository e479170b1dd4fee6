"""The store of polls. Concurrent polls share a statement.

A batch may hold many polls. Therefore these statements look up each item by itself (`by_index`), and each step passes
on what the next one needs: joining an earlier step again would take quadratic time.
"""

from collections.abc import Collection

from sso.bus.bus import Bus
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.claim_store import LEASE_LEFT, POLL_SNAPSHOT_COLUMNS, POLL_STATUS
from sso.gsid.model import Poll, SessionSnapshot
from sso.gsid.session_store import POLL_WORKER, RETENTION
from sso.gsid.topics import publish_poll

MAX_POLLS_PER_SECOND = 30  # for one session; further polls count as early
MAX_SCAN = 5000  # polls in one statement

# Every poll gets its own number, also if several polls of one session are in the same batch. Rows are locked in key
# order to avoid deadlocks. An older poll that may still be held is woken. A poll with an address is authenticated
# here, as session_auth.py would: the session is bound to that address and has no key.
_START = BatchStatement(
    f"""
    WITH locked AS ( -- the sessions, one row per poll
        SELECT item.n, s.gsid, {{poll_status}} AS status, s.ends > now() AS alive, s.ban,
            {{poll_worker}} AS older_worker, coalesce(s.retry_at > now() AND s.client_id IS NULL, false) AS early
        FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.ends > now() - {{retention}} AND (item.address IS NULL OR (
            s.public_key IS NULL AND s.address = item.address
            AND (SELECT t.blocked_until > now() FROM throttle t WHERE t.key = item.early_poll_key) IS NOT TRUE))
        ORDER BY item.gsid FOR UPDATE OF s
    ), extended AS ( -- the open sessions, one row per session, with the polls of this batch counted
        UPDATE game_sessions s SET
            poll = s.poll + batched.poll_count,
            poll_holder = s.poll + batched.poll_count || '@{{worker}}',
            ends = CASE WHEN s.client_id IS NOT NULL THEN s.ends -- a device knows when its session ends
                ELSE least(s.ends + make_interval(secs => {{ttl_s}}), s.created + make_interval(secs => {{max_s}})) END,
            held_until = now() + make_interval(secs => {{hold_s}}),
            retry_at = NULL,
            burst = CASE WHEN s.burst_since > now() - interval '1 s' THEN s.burst ELSE 0 END + batched.poll_count,
            burst_since = CASE WHEN s.burst_since > now() - interval '1 s' THEN s.burst_since ELSE now() END
        FROM (
            SELECT gsid, array_agg(n ORDER BY n) AS items, count(*) AS poll_count,
                max(older_worker) AS older_worker, bool_or(early) AS early
            FROM locked WHERE alive AND status IN ('pending', 'confirmed') GROUP BY gsid
        ) batched
        WHERE {by_index("s.gsid", "batched.gsid")}
        RETURNING batched.*, s.burst, CAST(extract(epoch FROM s.ends - now()) AS float) AS left_s,
            {{lease_left}} AS lease_left_s, {{snapshot_columns}}
    )
    SELECT item.n, true AS extended, newest_poll - poll_count + batch_position AS number, left_s, lease_left_s,
        early OR burst > {{max_polls}} AS early, older_worker,
        status, alive, newest_poll, cancels, ban, started, last_seen, ts
    FROM extended, unnest(items) WITH ORDINALITY AS item (n, batch_position)
    UNION ALL
    SELECT n, false, 0, 0, NULL, early, NULL, status, alive, 0, 0, ban, 0, 0, 0
    FROM locked WHERE NOT (alive AND status IN ('pending', 'confirmed'))
    """,
    columns={"gsid": "text", "address": "text", "early_poll_key": "bytea"},
)
_SET_RETRY_TIME = BatchStatement(
    f"""UPDATE game_sessions s SET retry_at = now() + make_interval(secs => locked.delay)
    FROM (
        SELECT s.gsid, item.delay, item.n
        FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")} AND s.poll = item.number
        ORDER BY item.gsid FOR UPDATE OF s
    ) locked
    WHERE {by_index("s.gsid", "locked.gsid")} RETURNING locked.n""",
    columns={"gsid": "text", "number": "int", "delay": "float"},
)
_FIND_CHANGED = Statement(
    f"""SELECT item.gsid
    FROM unnest(CAST(:gsids AS text[]), CAST(:numbers AS int[]), CAST(:cancels AS int[]))
        AS item (gsid, number, cancels)
    LEFT JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
    WHERE s.gsid IS NULL OR s.status <> 'pending' OR s.poll <> item.number OR s.cancels <> item.cancels"""
)


class PollStore:
    def __init__(self, database: Database, bus: Bus, ttl_s: int, max_s: int, hold_s: int) -> None:
        self._database = database
        self._bus = bus
        start = _START.substitute(
            ttl_s=float(ttl_s),
            max_s=float(max_s),
            hold_s=float(hold_s),
            retention=RETENTION,
            poll_status=POLL_STATUS,
            lease_left=LEASE_LEFT,
            snapshot_columns=POLL_SNAPSHOT_COLUMNS,
            poll_worker=POLL_WORKER,
            worker=bus.worker,
            max_polls=MAX_POLLS_PER_SECOND,
        )
        self._start = Batch(database, start)
        self._set_retry_time = Batch(database, _SET_RETRY_TIME)

    async def start(self, gsid: str, address: str | None = None, early_poll_key: bytes | None = None) -> Poll | None:
        """Starts a poll, which extends the session's life and becomes its newest poll.

        Returns None if the session does not exist. With an ``address`` also if the session is bound to another address
        or has a key, or if ``early_poll_key``, the counter of early polls from the address, is blocked.
        """
        row = await self._start(gsid=gsid, address=address, early_poll_key=early_poll_key)
        if row is None:
            return None
        snapshot = SessionSnapshot.from_row(row)
        if not row["extended"]:
            return Poll(gsid, 0, 0, 0.0, row["early"], snapshot)
        publish_poll(self._bus, gsid, row["older_worker"])
        return Poll(gsid, row["number"], snapshot.cancels, row["left_s"], row["early"], snapshot, row["lease_left_s"])

    async def set_retry_time(self, poll: Poll, delay_s: float) -> None:
        """A poll before this delay has passed counts as early."""
        await self._set_retry_time(gsid=poll.gsid, number=poll.number, delay=delay_s)

    async def find_changed(self, polls: Collection[Poll]) -> list[str]:
        """Returns the gsids of those polls whose session is no longer pending, was cancelled or has a newer poll."""
        remaining = list(polls)
        changed: list[str] = []
        for start in range(0, len(remaining), MAX_SCAN):
            part = remaining[start : start + MAX_SCAN]
            rows = await self._database.rows(
                _FIND_CHANGED,
                gsids=[poll.gsid for poll in part],
                numbers=[poll.number for poll in part],
                cancels=[poll.cancels for poll in part],
            )
            changed += [row["gsid"] for row in rows]
        return changed
