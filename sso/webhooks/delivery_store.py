"""The state of deliveries in the database. A lease lets one worker at a time send to a webhook.

Each method is one statement. A worker whose lease was taken over, or whose webhook was changed, finds that its
statements change nothing, and stops.
"""

from collections.abc import Iterable

from sso.change_stream.reader import StreamEvent
from sso.core.encryption import Keyring
from sso.core.ids import record_id
from sso.db.database import Database
from sso.db.statement import Statement
from sso.delivery.due_queue import LEASE_S
from sso.webhooks.model import ClaimedWebhook, secret_purpose

KEPT_DAYS = 30  # how long failed events are kept
MAX_FAILED = 10_000  # events that one statement moves to the list of failed ones

_CLAIM = Statement(
    """UPDATE webhooks SET lease = :lease, lease_until = now() + make_interval(secs => :lease_s) WHERE webhook_id = (
        SELECT w.webhook_id FROM webhooks w, change_stream s
        WHERE s.id = 1 AND NOT w.disabled AND w.position < s.last_position AND w.next_try <= now()
            AND w.lease_until <= now()
        ORDER BY w.next_try LIMIT 1 FOR UPDATE OF w SKIP LOCKED
    ) RETURNING *"""
)
_RELEASE = Statement(
    "UPDATE webhooks SET lease = '', lease_until = now() WHERE webhook_id = :webhook_id AND lease = :lease"
)
_ADVANCE = Statement(
    """UPDATE webhooks SET position = :position, lease_until = now() + make_interval(secs => :lease_s),
        tries = 0, failing_since = NULL, problem = ''
    WHERE webhook_id = :webhook_id AND lease = :lease RETURNING webhook_id"""
)
_SKIP = Statement(
    """UPDATE webhooks SET position = :position, lease_until = now() + make_interval(secs => :lease_s)
    WHERE webhook_id = :webhook_id AND lease = :lease RETURNING webhook_id"""
)
_POSTPONE = Statement(
    """UPDATE webhooks SET tries = :tries, next_try = now() + make_interval(secs => :pause_s), problem = :problem,
        failing_since = coalesce(failing_since, now())
    WHERE webhook_id = :webhook_id AND lease = :lease"""
)
_STORE_FAILED = Statement(
    f"""WITH webhook AS (
        SELECT webhook_id, position FROM webhooks WHERE webhook_id = :webhook_id AND lease = :lease FOR UPDATE
    ), failed AS (
        SELECT e.* FROM webhook w CROSS JOIN LATERAL (
            SELECT * FROM change_events
            WHERE position > w.position AND position <= :until AND type = ANY (CAST(:types AS text[]))
            ORDER BY position LIMIT {MAX_FAILED}
        ) AS e
    ), stored AS (
        INSERT INTO webhook_failures
            (webhook_id, position, at, type, user_id, application_id, data, tries, problem, expires)
        SELECT :webhook_id, position, at, type, user_id, application_id, data, :tries, :problem,
            now() + interval '{KEPT_DAYS} days'
        FROM failed ORDER BY position
    ), moved AS (
        UPDATE webhooks SET position = (SELECT max(position) FROM failed)
        WHERE webhook_id IN (SELECT webhook_id FROM webhook) AND EXISTS (SELECT FROM failed)
    )
    SELECT count(*) FROM failed"""
)
_CLAIM_FAILED = Statement(
    """UPDATE webhook_failures f SET retry_at = now() + make_interval(secs => :lease_s)
    FROM webhooks w WHERE w.webhook_id = f.webhook_id AND NOT w.disabled AND f.id = (
        SELECT r.id FROM webhook_failures r JOIN webhooks o ON o.webhook_id = r.webhook_id AND NOT o.disabled
        WHERE r.retry_at <= now() AND r.expires > now() AND r.webhook_id <> ALL (CAST(:busy AS text[]))
        ORDER BY r.retry_at, r.id LIMIT 1 FOR UPDATE OF r SKIP LOCKED
    ) RETURNING f.id AS failure_id, f.position, f.at, f.type, f.user_id, f.application_id, f.data,
        w.webhook_id, w.url, w.secret_sealed, w.events, w.tries, w.lease"""
)
_DELETE_FAILED = Statement("DELETE FROM webhook_failures WHERE id = :failure_id")
_KEEP_FAILED = Statement(
    "UPDATE webhook_failures SET retry_at = NULL, tries = tries + 1, problem = :problem WHERE id = :failure_id"
)


class DeliveryStore:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def claim(self) -> ClaimedWebhook | None:
        """Returns a webhook that has undelivered events and is due, with a lease; None if there is none."""
        row = await self._database.row(_CLAIM, lease=record_id(), lease_s=LEASE_S)
        if row is None:
            return None
        return ClaimedWebhook.from_row(row, self._secret(row["webhook_id"], row["secret_sealed"]))

    async def release(self, webhook: ClaimedWebhook) -> None:
        await self._database.value(_RELEASE, webhook_id=webhook.webhook_id, lease=webhook.lease)

    async def mark_delivered(self, webhook: ClaimedWebhook, cursor: str) -> bool:
        """Records that the event was accepted, and renews the lease. Returns False if the lease was lost."""
        return await self._move(_ADVANCE, webhook, cursor)

    async def skip_to(self, webhook: ClaimedWebhook, cursor: str) -> bool:
        """Records that the webhook wants no event up to the cursor. Returns False if the lease was lost."""
        return await self._move(_SKIP, webhook, cursor)

    async def _move(self, statement: Statement, webhook: ClaimedWebhook, cursor: str) -> bool:
        values = {"webhook_id": webhook.webhook_id, "lease": webhook.lease, "lease_s": LEASE_S}
        return await self._database.value(statement, position=int(cursor), **values) is not None

    async def postpone(self, webhook: ClaimedWebhook, tries: int, pause_s: float, problem: str) -> None:
        values = {"tries": tries, "pause_s": pause_s, "problem": problem}
        await self._database.value(_POSTPONE, webhook_id=webhook.webhook_id, lease=webhook.lease, **values)

    async def store_failed(self, webhook: ClaimedWebhook, until: str, tries: int, problem: str) -> int:
        """Moves the events up to the cursor to the list of failed ones. Returns their number; at most MAX_FAILED."""
        values = {"until": int(until), "types": sorted(webhook.types), "tries": tries, "problem": problem}
        count: int = await self._database.value(
            _STORE_FAILED, webhook_id=webhook.webhook_id, lease=webhook.lease, **values
        )
        return count

    async def claim_failed(self, busy: Iterable[str]) -> tuple[int, ClaimedWebhook, StreamEvent] | None:
        """Returns a failed event that is to be sent again, with its id in the list of failed ones."""
        row = await self._database.row(_CLAIM_FAILED, lease_s=LEASE_S, busy=list(busy))
        if row is None:
            return None
        webhook = ClaimedWebhook.from_row(row, self._secret(row["webhook_id"], row["secret_sealed"]))
        return row["failure_id"], webhook, StreamEvent.from_row(row)

    async def finish_failed(self, failure_id: int, problem: str | None) -> None:
        """Removes the event from the list of failed ones, or keeps it there with the new problem."""
        if problem is None:
            await self._database.value(_DELETE_FAILED, failure_id=failure_id)
        else:
            await self._database.value(_KEEP_FAILED, failure_id=failure_id, problem=problem)

    def _secret(self, webhook_id: str, sealed: str) -> str:
        return self._keyring.decrypt(secret_purpose(webhook_id), sealed)
