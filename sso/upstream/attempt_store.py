"""Sign-ins that wait for the answer of a provider: valid once, for ten minutes, in the browser that began them."""

from msgspec import Struct

from sso.core.ids import digest
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.upstream.model import Attempt

ATTEMPT_S = 600

_INSERT = Statement(
    """INSERT INTO upstream_attempts (digest, provider_id, browser, next, user_id, expires)
    VALUES (:digest, :provider_id, :browser, :next, :user_id, now() + make_interval(secs => :life))"""
)
_USE = Statement(
    """DELETE FROM upstream_attempts
    WHERE digest = :digest AND provider_id = :provider_id AND browser = :browser AND expires > now()
    RETURNING next, user_id, extract(epoch FROM expires) - :life AS begun"""
)
_USE_NONCE = Statement(
    """INSERT INTO upstream_nonces (digest, expires) VALUES (:digest, now() + make_interval(secs => :life))
    ON CONFLICT DO NOTHING RETURNING digest"""
)
_NONCE_IS_USED = Statement("SELECT EXISTS (SELECT FROM upstream_nonces WHERE digest = :digest AND expires > now())")


class BegunAttempt(Struct, frozen=True):
    """``user_id`` is the user who links an identity to the account; None for a sign-in."""

    next_path: str
    user_id: str | None
    begun: float  # Unix seconds


class AttemptStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def now(self) -> float:
        """Returns the time of the database in Unix seconds."""
        return self._database.clock.now()

    async def put(self, provider_id: str, attempt: Attempt, next_path: str, user_id: str | None) -> None:
        await self._database.value(
            _INSERT,
            digest=digest(attempt.state),
            provider_id=provider_id,
            browser=digest(attempt.browser_secret),
            next=next_path,
            user_id=user_id,
            life=float(ATTEMPT_S),
        )

    async def use(self, provider_id: str, state: str, browser_secret: str) -> BegunAttempt | None:
        """Uses the attempt up. Returns None if it is unknown, used, expired, or of another provider or browser."""
        row = await self._database.row(
            _USE,
            digest=digest(state),
            provider_id=provider_id,
            browser=digest(browser_secret),
            life=float(ATTEMPT_S),
        )
        return BegunAttempt(row["next"], row["user_id"], float(row["begun"])) if row else None

    async def use_nonce(self, provider_id: str, nonce: str, life_s: int) -> bool:
        """Returns False if the nonce was used before."""
        return await use_nonce(self._database, provider_id, nonce, life_s)


async def use_nonce(runner: Runner, provider_id: str, nonce: str, life_s: int) -> bool:
    """Returns False if the nonce of an answer, or the ticket, was used before."""
    return await runner.value(_USE_NONCE, digest=_nonce_name(provider_id, nonce), life=float(life_s)) is not None


async def nonce_is_used(runner: Runner, provider_id: str, nonce: str) -> bool:
    """Returns whether the nonce was used before. `use_nonce` decides in the end: a concurrent request may use it."""
    used: bool = await runner.value(_NONCE_IS_USED, digest=_nonce_name(provider_id, nonce))
    return used


def _nonce_name(provider_id: str, nonce: str) -> bytes:
    return digest(f"{provider_id}:{nonce}")
