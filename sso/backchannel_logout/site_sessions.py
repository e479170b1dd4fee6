"""The sites that users have signed in to with a browser session, and the notifications that such a session has ended.

A notification is queued in the transaction that ends the session, and sent by ``LogoutSender``.
"""

from collections.abc import Sequence

from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.log import request_fields

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
    FROM ended JOIN oauth_clients c USING (client_id) WHERE c.backchannel_logout_uri <> '' AND NOT c.disabled"""
)


async def end_site_sessions(
    tx: Runner,
    user_id: str,
    *,
    sids: Sequence[str] | None = None,
    kept_sid: str | None = None,
    client_id: str | None = None,
) -> None:
    """Queues a notification for each site that the user has signed in to, and invalidates codes that are on their way.

    ``sids`` restricts this to some sessions, ``client_id`` to one site. The session ``kept_sid`` does not end.
    """
    affected = {
        "user_id": user_id,
        "sids": None if sids is None else list(sids),
        "kept_sid": kept_sid,
        "client_id": client_id,
    }
    await tx.value(_DELETE_CODES, **affected)
    origin = request_fields()
    await tx.value(_END, **affected, request_id=origin.get("request"), trace_id=origin.get("trace"))
