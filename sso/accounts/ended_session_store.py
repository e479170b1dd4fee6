"""Sessions that someone ended elsewhere are remembered: a browser that still has one of their cookies is told why."""

from sso.db.database import Database
from sso.db.statement import Statement

# The last part of a statement that has deleted the sessions ``ended``.
REMEMBER_ENDED = """INSERT INTO ended_sessions (digest, user_id, expires)
    SELECT digest, user_id, now() + interval '30 days' FROM ended ON CONFLICT DO NOTHING"""
END = Statement(
    f"""WITH ended AS (
        DELETE FROM browser_sessions WHERE user_id = :user_id AND id = :id
        RETURNING digest, user_id, device, coalesce(sid, id) AS sid
    ), remembered AS ({REMEMBER_ENDED})
    SELECT device, sid FROM ended"""
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
