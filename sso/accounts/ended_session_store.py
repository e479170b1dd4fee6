"""Ends sessions. Those that someone ended elsewhere are remembered: a browser with one of their cookies is told why."""

from collections.abc import Sequence

from sso.accounts.history.events import EventKind, record_event
from sso.backchannel_logout.store import end_site_sessions
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

# The last part of a statement that has deleted the sessions ``ended``.
REMEMBER_ENDED = """INSERT INTO ended_sessions (digest, user_id, expires)
    SELECT digest, user_id, now() + interval '30 days' FROM ended ON CONFLICT DO NOTHING"""
_END = Statement(
    f"""WITH ended AS (
        DELETE FROM browser_sessions WHERE user_id = :user_id AND id = :id
        RETURNING digest, user_id, device, coalesce(sid, id) AS sid
    ), remembered AS ({REMEMBER_ENDED})
    SELECT device, sid FROM ended"""
)
_END_BY_DIGEST = Statement(
    """DELETE FROM browser_sessions WHERE digest = ANY (CAST(:digests AS bytea[]))
    RETURNING user_id, coalesce(sid, id) AS sid"""
)
# The event of the history that was written in the same transaction says why.
_WHY_ENDED = Statement(
    """SELECT coalesce((
        SELECT e.kind FROM account_events e WHERE e.user_id = s.user_id AND e.at = s.ended ORDER BY e.id DESC LIMIT 1
    ), '') FROM ended_sessions s WHERE s.digest = :digest AND s.expires > now()"""
)


async def why_ended(database: Database, session_digest: bytes) -> str | None:
    """Returns the kind of the event that has ended the session, or "" if there is none.

    Returns None if there was no such session, or it ended in another way: the user signed out, or it expired.
    """
    kind: str | None = await database.value(_WHY_ENDED, digest=session_digest)
    return kind


async def end_session(tx: Transaction, user_id: str, session_id: str) -> bool:
    """Ends a session, also at the sites. Returns False if the user has no such session."""
    row = await tx.row(_END, user_id=user_id, id=session_id)
    if row is None:
        return False
    await end_site_sessions(tx, user_id, sids=[row["sid"]])
    await record_event(tx, user_id, EventKind.SESSION_ENDED, device=row["device"])
    return True


async def end_sessions_by_digest(tx: Transaction, digests: Sequence[bytes]) -> None:
    for row in await tx.rows(_END_BY_DIGEST, digests=list(digests)):
        await end_site_sessions(tx, row["user_id"], sids=[row["sid"]])
