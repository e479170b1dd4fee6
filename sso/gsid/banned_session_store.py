"""A ban ends the game sessions and the sessions of devices that its user has confirmed or is looking at."""

from collections.abc import Sequence

from msgspec.structs import asdict

from sso.core.ban import Ban
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.gsid.topics import poll_topic, socket_topic

# A login whose answer is being written loses its lease: the worker that writes it notices, and issues nothing.
_END = Statement(
    """UPDATE game_sessions SET status = 'denied', stage = 'denied', ban = :ban, claimed_until = NULL
    WHERE gsid IN (
        SELECT s.gsid FROM game_sessions s LEFT JOIN oauth_clients c USING (client_id)
        WHERE s.gsid IN (
                SELECT gsid FROM game_sessions WHERE user_id = :user_id
                UNION SELECT gsid FROM game_sessions WHERE viewer = :user_id)
            AND s.ends > now() AND (s.status IN ('pending', 'confirmed') OR s.claimed_until IS NOT NULL)
            AND (CAST(:applications AS int[]) IS NULL
                OR ARRAY[s.app_id, s.gapp_id, c.application_id] && CAST(:applications AS int[]))
        ORDER BY s.gsid FOR UPDATE OF s
    ) RETURNING gsid"""
)


class BannedSessions:
    """Implements `sso.accounts.bans.operations.BanEnding`."""

    async def end(self, tx: Transaction, user_id: str, ban: Ban, applications: Sequence[int] | None) -> None:
        """Held polls are answered and sockets are closed when the transaction is committed."""
        chosen = None if applications is None else list(applications)
        for row in await tx.rows(_END, user_id=user_id, ban=asdict(ban), applications=chosen):
            tx.publish_after_commit(poll_topic(row["gsid"]))
            tx.publish_after_commit(socket_topic(row["gsid"]))
