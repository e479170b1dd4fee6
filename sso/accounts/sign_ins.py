"""The games and programs that a user is signed in to, as the account page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

EXPIRED_JWT_S = 30 * 86400  # for so long after its end, a user JWT still names its user where that is allowed

# Sign-ins of one application from one address are one line.
_LIST = Statement(
    """SELECT app_id, gapp_id, address, min(created) AS first_used, max(last_used) AS last_used, array_agg(id) AS ids
    FROM sign_ins WHERE user_id = :user_id AND expires > now() AND NOT ended
        AND last_used > now() - make_interval(secs => CAST(:idle_s AS float))
    GROUP BY app_id, gapp_id, address ORDER BY max(last_used) DESC LIMIT 100"""
)
# The user JWTs of an ended sign-in are void for as long as this row exists: longer than one of them could be renewed.
_END = Statement(
    """UPDATE sign_ins SET ended = true, expires = now() + make_interval(secs => CAST(:keep_s AS float))
    WHERE id IN (
        SELECT id FROM sign_ins WHERE user_id = :user_id AND id = ANY (CAST(:ids AS text[])) ORDER BY id FOR UPDATE
    )"""
)
_END_TOKENS = Statement(
    """DELETE FROM session_tokens WHERE digest IN (
        SELECT digest FROM session_tokens WHERE user_id = :user_id AND sign_in = ANY (CAST(:ids AS text[]))
        ORDER BY digest FOR UPDATE
    )"""
)


@dataclass(frozen=True)
class GameLine:
    """Sign-ins of one application from one address."""

    ids: tuple[str, ...]
    app_id: int
    gapp_id: int
    address: str
    first_used: datetime
    last_used: datetime


class SignIns:
    def __init__(self, database: Database, token_s: int, jwt_s: int, max_s: int) -> None:
        self._database = database
        self._idle_s = float(max(token_s, jwt_s + EXPIRED_JWT_S))  # unused for longer, nothing of it is valid any more
        self._keep_s = float(max_s + EXPIRED_JWT_S)

    async def list(self, user_id: str) -> list[GameLine]:
        rows = await self._database.rows(_LIST, user_id=user_id, idle_s=self._idle_s)
        return [GameLine(**{**row, "ids": tuple(row["ids"])}) for row in rows]

    async def end(self, user_id: str, ids: Sequence[str]) -> None:
        """From now on, the session tokens and user JWTs of these sign-ins of the user are void."""

        async def work(tx: Transaction) -> None:
            await tx.value(_END, user_id=user_id, ids=list(ids), keep_s=self._keep_s)
            await tx.value(_END_TOKENS, user_id=user_id, ids=list(ids))

        await self._database.transaction(work)
