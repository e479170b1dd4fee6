"""Registrations in progress in the database: mailed codes by browser, and puzzles that were solved."""

from sso.core.ids import digest
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

_SET_CODE = Statement(
    """INSERT INTO registration_codes (visit, login, code, expires)
    VALUES (:visit, :login, :code, now() + make_interval(secs => :life))
    ON CONFLICT (visit) DO UPDATE SET login = excluded.login, code = excluded.code, attempts = 0,
        expires = excluded.expires"""
)
_FIND_LOGIN = Statement("SELECT login FROM registration_codes WHERE visit = :visit AND expires > now()")
_COUNT_ATTEMPT = Statement(
    """UPDATE registration_codes SET attempts = attempts + 1
    WHERE visit = :visit AND expires > now() AND attempts < :max_attempts RETURNING login, code"""
)
_USE_CODE = Statement("DELETE FROM registration_codes WHERE visit = :visit AND code = :code RETURNING login")
_USE_PUZZLE = Statement(
    """INSERT INTO used_puzzles (digest, expires) VALUES (:digest, now() + make_interval(secs => :life))
    ON CONFLICT DO NOTHING RETURNING digest"""
)


async def set_code(tx: Runner, visit: bytes, login: str, code: bytes, life_s: int) -> None:
    """Replaces the code of the browser with this digest of its visit cookie."""
    await tx.value(_SET_CODE, visit=visit, login=login, code=code, life=float(life_s))


async def find_login(runner: Runner, visit: bytes) -> str | None:
    """Returns the address to which the code of the browser was mailed."""
    login: str | None = await runner.value(_FIND_LOGIN, visit=visit)
    return login


async def count_code_attempt(runner: Runner, visit: bytes, max_attempts: int) -> Row | None:
    """Counts an attempt at the code. Returns the address and the code, or None if it may not be checked."""
    return await runner.row(_COUNT_ATTEMPT, visit=visit, max_attempts=max_attempts)


async def use_code(tx: Runner, visit: bytes, code: bytes) -> bool:
    """Of several concurrent calls, one returns True."""
    return await tx.value(_USE_CODE, visit=visit, code=code) is not None


async def use_puzzle(runner: Runner, nonce: str, life_s: int) -> bool:
    """Returns False if the puzzle was solved before."""
    return await runner.value(_USE_PUZZLE, digest=digest(nonce), life=float(life_s)) is not None
