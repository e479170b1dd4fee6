"""Passkeys in the database."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sso.accounts.model import User
from sso.accounts.passkeys.challenges import Challenge
from sso.db.database import Database
from sso.db.statement import Statement

KEPT_S = 60  # a used challenge is kept for longer than it is valid, in case the clocks of two hosts differ

_LIST = Statement(
    """SELECT id, credential_id, name, transports, created, last_used FROM passkeys WHERE user_id = :user_id
    ORDER BY created, id"""
)
_RENAME = Statement("UPDATE passkeys SET name = :name WHERE user_id = :user_id AND id = :id RETURNING id")
_INSERT_CHALLENGE = """INSERT INTO used_passkey_challenges (digest, expires)
    VALUES (sha256(:challenge), to_timestamp(CAST(:expires AS float)))
    ON CONFLICT DO NOTHING RETURNING digest"""
# Of several answers to a challenge, one inserts its row, whatever the passkey is.
_USE_CHALLENGE = Statement(_INSERT_CHALLENGE)
_USE_CHALLENGE_AND_FIND = Statement(
    f"""WITH used_challenge AS ({_INSERT_CHALLENGE})
    SELECT u.*, p.public_key, p.created AS passkey_created FROM passkeys p JOIN users u USING (user_id)
    WHERE p.credential_id = :credential_id AND (NOT u.disabled OR u.deletion_by IN ('user', 'operator'))
        AND EXISTS (SELECT FROM used_challenge)"""
)
# The counter of a passkey that counts must have advanced.
_RECORD_USE = Statement(
    """UPDATE passkeys SET sign_count = :sign_count, last_used = now()
    WHERE credential_id = :credential_id AND (sign_count < :sign_count OR (sign_count = 0 AND :sign_count = 0))
    RETURNING id"""
)


@dataclass(frozen=True)
class Passkey:
    """A passkey in the list of the account page."""

    id: str
    credential_id: bytes
    name: str
    transports: tuple[str, ...]
    created: datetime
    last_used: datetime | None


@dataclass(frozen=True)
class PasskeyOwner:
    user: User
    public_key: bytes
    created: datetime  # the passkey


class PasskeyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, user_id: str) -> list[Passkey]:
        rows = await self._database.rows(_LIST, user_id=user_id)
        return [Passkey(**{**dict(row), "transports": tuple(row["transports"])}) for row in rows]

    async def use_challenge_and_find(self, challenge: Challenge, credential_id: bytes) -> PasskeyOwner | None:
        """Uses up the challenge, and finds the passkey that answers it.

        Returns None if the challenge was used before, there is no such passkey, or its user is disabled. The user of a
        closed account is found, and told that it is closed.
        """
        row = await self._database.row(
            _USE_CHALLENGE_AND_FIND, credential_id=credential_id, **_challenge_values(challenge)
        )
        return PasskeyOwner(User.from_row(row), row["public_key"], row["passkey_created"]) if row else None

    async def use_challenge(self, challenge: Challenge) -> bool:
        """Returns False if the challenge was used before."""
        return await self._database.value(_USE_CHALLENGE, **_challenge_values(challenge)) is not None

    async def record_use(self, credential_id: bytes, sign_count: int) -> bool:
        """Stores the counter, after the signature was verified.

        Returns False if the counter has not advanced or the passkey was removed.
        """
        return await self._database.value(_RECORD_USE, credential_id=credential_id, sign_count=sign_count) is not None

    async def rename(self, user_id: str, passkey_id: str, name: str) -> bool:
        """Returns False if the user has no such passkey."""
        return await self._database.value(_RENAME, user_id=user_id, id=passkey_id, name=name) is not None


def _challenge_values(challenge: Challenge) -> dict[str, Any]:
    return {"challenge": challenge.raw, "expires": float(challenge.expires + KEPT_S)}
