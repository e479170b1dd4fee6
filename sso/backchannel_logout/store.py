"""The sites that users have signed in to with a browser session, and the notifications that such a session has ended.

A notification is queued in the transaction that ends the session, which wakes the senders, and sent by
``LogoutDelivery``.
"""

from collections.abc import Sequence

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.log import request_fields
from sso.mail.outbox import TOPIC
from sso.signals.recording import record_ended_sessions

KEPT_DAYS = 7  # `sso doctor` reports a notification that could not be delivered for this time

_IS_AFFECTED = """user_id = :user_id AND (CAST(:sids AS text[]) IS NULL OR sid = ANY (CAST(:sids AS text[])))
            AND sid IS DISTINCT FROM CAST(:kept_sid AS text)
            AND client_id = coalesce(CAST(:client_id AS text), client_id)"""
# A code that was not redeemed yet would let a site sign in with a session that has ended. The statement waits for
# redemptions in progress, so that _END finds the sites that they have added.
_DELETE_CODES = Statement(
    f"""DELETE FROM oauth_codes WHERE redeemed IS NULL AND digest IN (
        SELECT digest FROM oauth_codes WHERE {_IS_AFFECTED} ORDER BY digest FOR UPDATE
    )"""
)
_END = Statement(
    f"""WITH ended AS (
        DELETE FROM oauth_site_sessions WHERE (sid, client_id) IN (
            SELECT sid, client_id FROM oauth_site_sessions WHERE {_IS_AFFECTED} ORDER BY sid, client_id FOR UPDATE
        ) RETURNING sid, client_id, user_id
    )
    INSERT INTO logout_notifications (client_id, sub, sid, expires, request_id, trace_id)
    SELECT ended.client_id, ended.user_id, ended.sid, now() + interval '{KEPT_DAYS} days', :request_id, :trace_id
    FROM ended JOIN oauth_clients c USING (client_id) WHERE c.backchannel_logout_uri <> '' AND NOT c.disabled
    RETURNING id"""
)
_CLAIM = Statement(
    """UPDATE logout_notifications n SET tries = tries + 1, next_try = now() + make_interval(secs => :lease)
    FROM oauth_clients c WHERE c.client_id = n.client_id AND n.id = (
        SELECT id FROM logout_notifications
        WHERE next_try <= now() AND expires > now() AND client_id <> ALL (CAST(:busy AS text[]))
        ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING n.id, n.client_id, n.sub, n.sid, n.tries, n.request_id, n.trace_id, c.profile, c.id_alg,
        CASE WHEN c.disabled THEN '' ELSE c.backchannel_logout_uri END AS uri"""
)
_DELETE = Statement("DELETE FROM logout_notifications WHERE id = :id")
# Without a pause, the notification has failed. It stays for `sso doctor` until it expires.
_STORE_FAILURE = Statement(
    """UPDATE logout_notifications SET next_try = now() + make_interval(secs => :pause), problem = :problem
    WHERE id = :id"""
)


async def end_site_sessions(
    tx: Transaction,
    user_id: str,
    *,
    sids: Sequence[str] | None = None,
    kept_sid: str | None = None,
    client_id: str | None = None,
    keeps_codes: bool = False,
) -> None:
    """Queues a notification for each site that the user has signed in to, and invalidates codes that are on their way.
    Clients that have a stream of signals get one.

    ``sids`` restricts this to some sessions, ``client_id`` to one site. The session ``kept_sid`` does not end.
    ``keeps_codes``: the caller has invalidated the codes.
    """
    affected = {
        "user_id": user_id,
        "sids": None if sids is None else list(sids),
        "kept_sid": kept_sid,
        "client_id": client_id,
    }
    if not keeps_codes:
        await tx.value(_DELETE_CODES, **affected)
    origin = request_fields()
    if await tx.value(_END, **affected, request_id=origin.get("request"), trace_id=origin.get("trace")) is not None:
        tx.publish_after_commit(TOPIC)
    await record_ended_sessions(tx, user_id, sids=sids, kept_sid=kept_sid, client_id=client_id)


async def claim_notification(runner: Runner, lease_s: float, busy: list[str]) -> Row | None:
    """Returns a notification that is due, for a client that is not in ``busy``. Others cannot claim it for so long."""
    return await runner.row(_CLAIM, lease=lease_s, busy=busy)


async def delete_notification(runner: Runner, notification_id: int) -> None:
    await runner.value(_DELETE, id=notification_id)


async def store_failed_notification(runner: Runner, notification_id: int, pause_s: float | None, problem: str) -> None:
    await runner.value(_STORE_FAILURE, id=notification_id, pause=pause_s, problem=problem)
