"""Second factors in the database: which are on, mailed codes, recovery codes, and wrong codes.

After ``MAX_ATTEMPTS`` wrong codes in a row, a factor is blocked until an operator unblocks it. An attempt is counted
before the code is checked, in the same statement that allows the check.
"""

from collections.abc import Sequence
from datetime import datetime

from sso.accounts.history.events import SUPPORT, EventKind
from sso.accounts.model import User
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

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
# No code is sent while the factor is blocked, because it would not be accepted.
_NEW_CODE = Statement(
    """INSERT INTO email_codes AS e (user_id, digest, sent, expires)
    SELECT user_id, :digest, now(), now() + make_interval(secs => :life) FROM users WHERE user_id = :user_id
        AND NOT EXISTS (SELECT FROM factor_guesses g WHERE g.user_id = :user_id AND factor = 'email'
            AND attempts >= :max_attempts)
    ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, sent = excluded.sent, expires = excluded.expires,
        failures = 0 WHERE e.sent < now() - make_interval(secs => :resend)
    RETURNING user_id"""
)
_CODE_MAIL_STATE = Statement(
    """SELECT (SELECT CAST(ceil(extract(epoch FROM sent - now()) + :resend) AS int) FROM email_codes
            WHERE user_id = :user_id) AS wait_s,
        EXISTS (SELECT FROM factor_guesses WHERE user_id = :user_id AND factor = 'email'
            AND attempts >= :max_attempts) AS is_blocked"""
)
_COUNT_CODE_ATTEMPT = Statement(
    """UPDATE email_codes SET failures = failures + 1
    WHERE user_id = :user_id AND expires > now() AND failures < :max_attempts RETURNING digest"""
)
_DELETE_MAILED_CODE = Statement("DELETE FROM email_codes WHERE user_id = :user_id")
_USE_TOTP_STEP = Statement(
    """UPDATE users SET totp_last_step = :step
    WHERE user_id = :user_id AND totp_last_step < :step RETURNING user_id"""
)
_USE_CODE = Statement("DELETE FROM email_codes WHERE user_id = :user_id AND digest = :digest RETURNING user_id")
# The upsert locks the row of the user's set, so concurrent replacements follow each other.
_REPLACE_KEY = Statement(
    """INSERT INTO recovery_code_sets (user_id, key_sealed) VALUES (:user_id, :key_sealed)
    ON CONFLICT (user_id) DO UPDATE SET key_sealed = excluded.key_sealed, created = now()"""
)
_DELETE_RECOVERY_CODES = Statement("DELETE FROM recovery_codes WHERE user_id = :user_id")
_DELETE_SET = Statement("DELETE FROM recovery_code_sets WHERE user_id = :user_id")
_INSERT_RECOVERY_CODES = Statement(
    """INSERT INTO recovery_codes (user_id, digest)
    SELECT :user_id, digest FROM unnest(CAST(:digests AS bytea[])) AS digest"""
)
_GET_KEY = Statement("SELECT key_sealed FROM recovery_code_sets WHERE user_id = :user_id")
# Of several concurrent uses, one deletes the row.
_USE_RECOVERY_CODE = Statement(
    "DELETE FROM recovery_codes WHERE user_id = :user_id AND digest = :digest RETURNING digest"
)
_COUNT_RECOVERY_CODES = Statement("SELECT count(*) FROM recovery_codes WHERE user_id = :user_id")
_SET_TOTP = Statement(
    """UPDATE users SET totp_sealed = :totp_sealed, totp_last_step = :step
    WHERE user_id = :user_id AND valid_from = :valid_from RETURNING user_id"""
)
_SET_EMAIL = Statement(
    """UPDATE users SET email_2fa = :on
    WHERE user_id = :user_id AND valid_from = :valid_from AND email_2fa <> :on RETURNING user_id"""
)
_REMOVE_ALL = Statement(
    """WITH removed_passkeys AS (DELETE FROM passkeys WHERE user_id = :user_id)
    UPDATE users SET totp_sealed = NULL, totp_last_step = 0, email_2fa = false, passkey_count = 0
    WHERE user_id = :user_id RETURNING user_id"""
)
# When an app was set up is known from the security history. Support is not the thief.
_EARLIER = Statement(
    """SELECT totp_sealed IS NOT NULL AND NOT EXISTS (SELECT FROM account_events e WHERE e.user_id = u.user_id
            AND e.at >= :before AND e.kind = :app_added AND e.detail ->> 'by' IS DISTINCT FROM :support) AS totp,
        EXISTS (SELECT FROM passkeys p WHERE p.user_id = u.user_id AND p.created < :before) AS passkey,
        EXISTS (SELECT FROM recovery_code_sets s JOIN recovery_codes c USING (user_id)
            WHERE s.user_id = u.user_id AND s.created < :before) AS recovery
    FROM users u WHERE u.user_id = :user_id"""
)


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


async def store_mailed_code(tx: Runner, user_id: str, digest: bytes, life_s: int, resend_s: int) -> bool:
    """Replaces the mailed code. Returns False if the last one is too recent, or mailed codes are blocked."""
    values = {"user_id": user_id, "digest": digest, "life": float(life_s), "resend": float(resend_s)}
    return bool(await tx.value(_NEW_CODE, **values, max_attempts=MAX_ATTEMPTS))


async def read_code_wait(runner: Runner, user_id: str, resend_s: int) -> int | None:
    """Returns the seconds until the next code can be mailed, 0 if it can be now, None if mailed codes are blocked."""
    row = await runner.row(_CODE_MAIL_STATE, user_id=user_id, resend=float(resend_s), max_attempts=MAX_ATTEMPTS)
    assert row is not None
    return None if row["is_blocked"] else max(0, row["wait_s"] or 0)


async def count_code_attempt(runner: Runner, user_id: str, max_attempts: int) -> bytes | None:
    """Counts an attempt at the mailed code. Returns its digest, or None if it may not be checked."""
    digest: bytes | None = await runner.value(_COUNT_CODE_ATTEMPT, user_id=user_id, max_attempts=max_attempts)
    return digest


async def use_mailed_code(runner: Runner, user_id: str, digest: bytes) -> bool:
    """Of several concurrent calls, one returns True."""
    return await runner.value(_USE_CODE, user_id=user_id, digest=digest) is not None


async def delete_mailed_code(tx: Runner, user_id: str) -> None:
    await tx.value(_DELETE_MAILED_CODE, user_id=user_id)


async def use_totp_step(runner: Runner, user_id: str, step: int) -> bool:
    """Marks the time step of a TOTP code as used. Returns False if it, or a later one, was used before."""
    return await runner.value(_USE_TOTP_STEP, user_id=user_id, step=step) is not None


async def replace_recovery_codes(tx: Runner, user_id: str, key_sealed: str, digests: Sequence[bytes]) -> None:
    await tx.value(_REPLACE_KEY, user_id=user_id, key_sealed=key_sealed)
    await tx.value(_DELETE_RECOVERY_CODES, user_id=user_id)
    await tx.value(_INSERT_RECOVERY_CODES, user_id=user_id, digests=list(digests))


async def delete_recovery_codes(tx: Runner, user_id: str) -> None:
    await tx.value(_DELETE_RECOVERY_CODES, user_id=user_id)
    await tx.value(_DELETE_SET, user_id=user_id)


async def read_recovery_key(runner: Runner, user_id: str) -> str | None:
    """Returns the encrypted key of the user's recovery codes."""
    sealed: str | None = await runner.value(_GET_KEY, user_id=user_id)
    return sealed


async def use_recovery_code(tx: Runner, user_id: str, digest: bytes) -> bool:
    return await tx.value(_USE_RECOVERY_CODE, user_id=user_id, digest=digest) is not None


async def count_recovery_codes(runner: Runner, user_id: str) -> int:
    count: int = await runner.value(_COUNT_RECOVERY_CODES, user_id=user_id)
    return count


async def set_totp(tx: Runner, user: User, *, totp_sealed: str | None, step: int) -> bool:
    """Returns False if the user was revoked since it was read."""
    values = {"user_id": user.user_id, "valid_from": user.valid_from, "totp_sealed": totp_sealed, "step": step}
    return await tx.value(_SET_TOTP, **values) is not None


async def set_email_codes(tx: Runner, user: User, *, on: bool) -> bool:
    """Returns False if the user was revoked since it was read, or codes by e-mail are on or off already."""
    return await tx.value(_SET_EMAIL, user_id=user.user_id, valid_from=user.valid_from, on=on) is not None


async def remove_factors(tx: Runner, user: User) -> bool:
    """Removes all second factors of the user except recovery codes. Returns False if the user does not exist."""
    return await tx.value(_REMOVE_ALL, user_id=user.user_id) is not None


async def read_earlier_factors(runner: Runner, user_id: str, before: datetime) -> Row | None:
    """Returns which of totp, passkey and recovery the user had before the moment and still has."""
    values = {"user_id": user_id, "before": before, "app_added": str(EventKind.TOTP_ADDED), "support": SUPPORT}
    return await runner.row(_EARLIER, **values)
