"""Limits wrong codes of a second factor: after ``MAX_ATTEMPTS`` in a row it is blocked until an operator unblocks it.

An attempt is counted before the code is checked, in the same statement that allows the check.
"""

from collections.abc import Sequence

from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner

MAX_ATTEMPTS = 20

_COUNT = Statement(
    """INSERT INTO factor_guesses AS g (user_id, factor, attempts)
    SELECT :user_id, factor, 1 FROM unnest(CAST(:factors AS text[])) AS factor ORDER BY factor
    ON CONFLICT (user_id, factor) DO UPDATE SET attempts = g.attempts + 1 WHERE g.attempts < :max_attempts
    RETURNING factor, attempts"""
)
# A blocked factor stays blocked after a correct code of another factor.
_RESET = Statement(
    """DELETE FROM factor_guesses WHERE user_id = :user_id AND (factor = :factor OR attempts < :max_attempts)
    RETURNING factor"""
)
_BLOCKED = Statement(
    "SELECT factor FROM factor_guesses WHERE user_id = :user_id AND attempts >= :max_attempts ORDER BY factor"
)
_CLAIM_NOTICE = Statement(
    """UPDATE factor_guesses SET owner_notified = true
    WHERE user_id = :user_id AND attempts >= :max_attempts AND NOT owner_notified RETURNING factor"""
)
_CLEAR = Statement("DELETE FROM factor_guesses WHERE user_id = :user_id AND CAST(:factor AS text) IN ('', factor)")


class SecondFactorAttempts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, user_id: str, factors: Sequence[str]) -> dict[str, int]:
        """Counts an attempt at each of the factors. Returns the counts of the factors that are not blocked."""
        rows = await self._database.rows(_COUNT, user_id=user_id, factors=list(factors), max_attempts=MAX_ATTEMPTS)
        return {row["factor"]: row["attempts"] for row in rows}

    async def record_success(self, user_id: str, factor: str) -> None:
        """Resets the counts after a correct code."""
        await self._database.value(_RESET, user_id=user_id, factor=factor, max_attempts=MAX_ATTEMPTS)

    async def blocked(self, user_id: str) -> frozenset[str]:
        """Returns the blocked factors of the user."""
        rows = await self._database.rows(_BLOCKED, user_id=user_id, max_attempts=MAX_ATTEMPTS)
        return frozenset(row["factor"] for row in rows)


async def claim_block_notice(tx: Runner, user_id: str) -> bool:
    """Returns True, once, if a factor of the user is blocked and the user must be notified in this transaction."""
    return await tx.value(_CLAIM_NOTICE, user_id=user_id, max_attempts=MAX_ATTEMPTS) is not None


async def clear_attempts(tx: Runner, user_id: str, factor: str = "") -> None:
    """Unblocks one factor of the user, or all of them."""
    await tx.value(_CLEAR, user_id=user_id, factor=factor)
