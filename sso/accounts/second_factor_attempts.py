"""Consecutive wrong codes of a second factor. A guess is counted before it is judged, in the statement that admits it.

After ``MAX_GUESSES`` wrong codes in a row a factor is blocked: no guess is judged until an operator unblocks it.
"""

from collections.abc import Sequence

from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner

MAX_ATTEMPTS = 20

_CLAIM = Statement(
    """INSERT INTO factor_guesses AS g (user_id, factor, attempts)
    SELECT :user_id, factor, 1 FROM unnest(CAST(:factors AS text[])) AS factor ORDER BY factor
    ON CONFLICT (user_id, factor) DO UPDATE SET attempts = g.attempts + 1 WHERE g.attempts < :most
    RETURNING factor, attempts"""
)
# A factor that is blocked stays blocked when another one was right.
_RIGHT = Statement(
    "DELETE FROM factor_guesses WHERE user_id = :user_id AND (factor = :factor OR attempts < :most) RETURNING factor"
)
_BLOCKED = Statement("SELECT factor FROM factor_guesses WHERE user_id = :user_id AND attempts >= :most ORDER BY factor")
_TO_NOTIFY = Statement(
    """UPDATE factor_guesses SET owner_notified = true
    WHERE user_id = :user_id AND attempts >= :most AND NOT owner_notified RETURNING factor"""
)
_FORGET = Statement("DELETE FROM factor_guesses WHERE user_id = :user_id AND CAST(:factor AS text) IN ('', factor)")


class SecondFactorAttempts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, user_id: str, factors: Sequence[str]) -> dict[str, int]:
        """Counts one guess at each of the factors. Returns the counts of those that it may be judged by.

        A factor that is blocked is not among them.
        """
        rows = await self._database.rows(_CLAIM, user_id=user_id, factors=list(factors), most=MAX_ATTEMPTS)
        return {row["factor"]: row["attempts"] for row in rows}

    async def record_success(self, user_id: str, factor: str) -> None:
        """Starts the count afresh."""
        await self._database.value(_RIGHT, user_id=user_id, factor=factor, most=MAX_ATTEMPTS)

    async def blocked(self, user_id: str) -> frozenset[str]:
        rows = await self._database.rows(_BLOCKED, user_id=user_id, most=MAX_ATTEMPTS)
        return frozenset(row["factor"] for row in rows)


async def claim_block_notice(tx: Runner, user_id: str) -> bool:
    """Returns True if a factor of the user is blocked and the transaction must tell its owner; True only once."""
    return await tx.value(_TO_NOTIFY, user_id=user_id, most=MAX_ATTEMPTS) is not None


async def clear_attempts(tx: Runner, user_id: str, factor: str = "") -> None:
    """Unblocks one factor of the user, or all of them."""
    await tx.value(_FORGET, user_id=user_id, factor=factor)
