"""Terminates a game session for an administrator, with everything that was issued for it."""

from dataclasses import dataclass

from sso.accounts.history.events import EventKind, record_event
from sso.bus.bus import Bus
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.gsid.model import DELIVERED
from sso.gsid.session_store import POLL_WORKER, SOCKET_WORKER
from sso.gsid.topics import publish_poll, publish_socket

# A login that was delivered stays delivered, so that another poll is still refused as a repetition. One whose answer is
# being written loses its lease: the worker that writes it notices, and what it issued is void.
_CLOSE = Statement(
    f"""UPDATE game_sessions s SET claimed_until = NULL,
        status = CASE WHEN s.status = 'delivered' AND s.claimed_until IS NULL THEN 'delivered' ELSE 'closed' END
    WHERE s.gsid = :gsid AND (s.status = 'delivered' OR (s.status IN ('pending', 'confirmed') AND s.ends > now()))
    RETURNING s.status, s.user_id, s.claim_id, s.app_id, s.gapp_id, {POLL_WORKER} AS poll_worker,
        {SOCKET_WORKER} AS socket_worker"""
)
# Stored as ended even if it does not exist yet, as in ``claim_store.py``: a late worker then cannot start it.
_END_SIGN_IN = Statement(
    """INSERT INTO sign_ins (id, user_id, last_used, expires, auth, ended)
    VALUES (:id, :user_id, now(), now() + make_interval(secs => :keep_s), 'gsid', true)
    ON CONFLICT (id) DO UPDATE SET ended = true, expires = excluded.expires WHERE NOT sign_ins.ended RETURNING id"""
)
_END_TOKENS = Statement(
    """DELETE FROM session_tokens WHERE digest IN (
        SELECT digest FROM session_tokens WHERE user_id = :user_id AND sign_in = :id ORDER BY digest FOR UPDATE
    )"""
)


@dataclass(frozen=True)
class TerminatedSession:
    """A session that was terminated, and the workers that hold its poll and its socket; None if there are none."""

    gsid: str
    poll_worker: str | None
    socket_worker: str | None

    def wake_clients(self, bus: Bus) -> None:
        """Answers its held poll and closes its socket. To be called when the transaction is committed."""
        publish_poll(bus, self.gsid, self.poll_worker)
        publish_socket(bus, self.gsid, self.socket_worker)


async def terminate_session(tx: Transaction, gsid: str, keep_s: float) -> TerminatedSession | None:
    """Closes the session and ends the tokens of its login. Returns None if there was nothing to end.

    ``keep_s``: how long the end of the login is remembered, which is longer than its tokens can be renewed.
    """
    row = await tx.row(_CLOSE, gsid=gsid)
    if row is None:
        return None
    if row["claim_id"] is not None:
        sign_in = {"id": row["claim_id"], "user_id": row["user_id"]}
        if await tx.value(_END_SIGN_IN, **sign_in, keep_s=keep_s) is not None:
            await tx.value(_END_TOKENS, **sign_in)
            names = {"app_id": row["app_id"], "gapp_id": row["gapp_id"]}
            await record_event(tx, row["user_id"], EventKind.GAME_ENDED, **names)
        elif row["status"] == DELIVERED:
            return None
    return TerminatedSession(gsid, row["poll_worker"], row["socket_worker"])
