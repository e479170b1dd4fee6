"""The delivery of events: what waits, what was received, and the lease that lets one worker at a time push a stream.

A stream that is not enabled delivers only the events that say so.
"""

from collections.abc import Sequence

from msgspec import Struct

from sso.core.encryption import Keyring
from sso.core.ids import record_id
from sso.db.database import Database
from sso.db.service_clients import MAY_HAVE_STREAMS
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.delivery.due_queue import LEASE_S
from sso.signals.event_types import SignalType
from sso.ssf.model import StoredSignal, authorization_purpose, is_stream_id

_IS_DELIVERED = f"e.expires > now() AND (s.status = 'enabled' OR e.type = '{SignalType.STREAM_UPDATED}')"
_COLUMNS = "e.id, e.jti, e.at, e.type, e.sub, e.sid, e.email, e.data, e.txn, s.stream_id, s.client_id, c.id_alg"
# Removes what the receiver has acknowledged or rejected, and reads what is next. The rows that this statement removes
# are still visible to it, so they are left out by name.
_POLL = Statement(
    f"""WITH stream AS (
        SELECT * FROM signal_streams WHERE stream_id = :stream_id AND client_id = :client_id AND method = 'poll'
    ), received AS (
        DELETE FROM signal_events WHERE stream_id IN (SELECT stream_id FROM stream)
            AND jti = ANY (CAST(:received AS text[])) RETURNING id
    ), noted AS (
        UPDATE signal_streams SET last_delivery = now(),
            problem = CASE WHEN CAST(:problem AS text) <> '' THEN CAST(:problem AS text) ELSE problem END
        WHERE stream_id IN (SELECT stream_id FROM stream) AND EXISTS (SELECT FROM received)
    )
    SELECT {_COLUMNS} FROM stream s JOIN oauth_clients c ON c.client_id = s.client_id AND NOT c.disabled
    LEFT JOIN LATERAL (
        SELECT * FROM signal_events e WHERE e.stream_id = s.stream_id AND e.jti <> ALL (CAST(:received AS text[]))
            AND {_IS_DELIVERED} ORDER BY e.id LIMIT :limit
    ) e ON true ORDER BY e.id"""
)
_HAVE_EVENTS = Statement(
    f"""SELECT s.stream_id FROM signal_streams s WHERE s.stream_id = ANY (CAST(:stream_ids AS text[]))
        AND EXISTS (SELECT FROM signal_events e WHERE e.stream_id = s.stream_id AND {_IS_DELIVERED})"""
)
_CLAIM = Statement(
    f"""UPDATE signal_streams SET lease = :lease, lease_until = now() + make_interval(secs => :lease_s)
    WHERE stream_id = (
        SELECT s.stream_id FROM signal_streams s WHERE s.method = 'push' AND s.next_try <= now()
            AND s.lease_until <= now()
            AND EXISTS (SELECT FROM oauth_clients c WHERE c.client_id = s.client_id
                AND {MAY_HAVE_STREAMS.format("c")})
            AND EXISTS (SELECT FROM signal_events e WHERE e.stream_id = s.stream_id AND {_IS_DELIVERED})
        ORDER BY s.next_try LIMIT 1 FOR NO KEY UPDATE OF s SKIP LOCKED
    ) RETURNING stream_id, client_id, endpoint_url, authorization_sealed, tries, lease"""
)
_NEXT = Statement(
    f"""SELECT {_COLUMNS} FROM signal_streams s JOIN oauth_clients c ON c.client_id = s.client_id
    JOIN signal_events e ON e.stream_id = s.stream_id AND {_IS_DELIVERED}
    WHERE s.stream_id = :stream_id AND s.lease = :lease AND {MAY_HAVE_STREAMS.format("c")}
    ORDER BY e.id LIMIT :limit"""
)
_FINISH = Statement(
    """WITH held AS (
        UPDATE signal_streams SET lease_until = now() + make_interval(secs => :lease_s), tries = 0,
            failing_since = NULL, problem = :problem, last_delivery = now()
        WHERE stream_id = :stream_id AND lease = :lease RETURNING stream_id
    ), received AS (
        DELETE FROM signal_events WHERE id = :id AND stream_id IN (SELECT stream_id FROM held)
    )
    SELECT stream_id FROM held"""
)
_RELEASE = Statement(
    "UPDATE signal_streams SET lease = '', lease_until = now() WHERE stream_id = :stream_id AND lease = :lease"
)
_POSTPONE = Statement(
    """UPDATE signal_streams SET tries = :tries, next_try = now() + make_interval(secs => :pause_s),
        problem = :problem, failing_since = coalesce(failing_since, now())
    WHERE stream_id = :stream_id AND lease = :lease"""
)


class ClaimedStream(Struct, frozen=True):
    """A stream that this worker pushes until the lease ends."""

    stream_id: str
    client_id: str
    endpoint_url: str
    authorization: str
    tries: int
    lease: str


class SignalDeliveries:
    """Each method is one statement."""

    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def poll(
        self, client_id: str, stream_id: str, received: Sequence[str], problem: str, limit: int
    ) -> list[StoredSignal] | None:
        """Removes the events with these ids and returns the next ones. Returns None if there is no such stream."""
        if not is_stream_id(stream_id):
            return None
        rows = await self._database.rows(
            _POLL, client_id=client_id, stream_id=stream_id, received=list(received), problem=problem, limit=limit
        )
        return [StoredSignal.from_row(row) for row in rows if row["id"] is not None] if rows else None

    async def have_events(self, stream_ids: Sequence[str]) -> list[str]:
        """Returns those of the streams that have something to deliver."""
        rows = await self._database.rows(_HAVE_EVENTS, stream_ids=list(stream_ids))
        return [row["stream_id"] for row in rows]

    async def claim(self) -> ClaimedStream | None:
        """Returns a stream that has events to be pushed and is due, with a lease; None if there is none."""
        row = await self._database.row(_CLAIM, lease=record_id(), lease_s=LEASE_S)
        return None if row is None else self._claimed(row)

    async def next_events(self, stream: ClaimedStream, limit: int) -> list[StoredSignal]:
        """Returns the oldest events. There are none if the lease was lost."""
        rows = await self._database.rows(_NEXT, stream_id=stream.stream_id, lease=stream.lease, limit=limit)
        return [StoredSignal.from_row(row) for row in rows]

    async def finish(self, stream: ClaimedStream, event_id: int, problem: str = "") -> bool:
        """Removes an event that was received, or rejected for a reason. Returns False if the lease was lost."""
        values = {"stream_id": stream.stream_id, "lease": stream.lease, "lease_s": LEASE_S}
        return await self._database.value(_FINISH, **values, id=event_id, problem=problem) is not None

    async def postpone(self, stream: ClaimedStream, tries: int, pause_s: float, problem: str) -> None:
        values = {"tries": tries, "pause_s": pause_s, "problem": problem}
        await self._database.value(_POSTPONE, stream_id=stream.stream_id, lease=stream.lease, **values)

    async def release(self, stream: ClaimedStream) -> None:
        await self._database.value(_RELEASE, stream_id=stream.stream_id, lease=stream.lease)

    def _claimed(self, row: Row) -> ClaimedStream:
        sealed = row["authorization_sealed"]
        authorization = self._keyring.decrypt(authorization_purpose(row["stream_id"]), sealed) if sealed else ""
        return ClaimedStream(
            row["stream_id"], row["client_id"], row["endpoint_url"], authorization, row["tries"], row["lease"]
        )
