"""Passkeys in the database."""

from dataclasses import dataclass
from datetime import datetime

from sso.accounts.model import User
from sso.accounts.passkeys.challenges import Challenge
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner

KEPT_S = 60  # a used challenge is kept for longer than it is valid, in case the clocks of two hosts differ

_LIST = Statement(
    """SELECT id, credential_id, name, transports, created, last_used FROM passkeys WHERE user_id = :user_id
    ORDER BY created, id"""
)
_FIND = Statement(
    """SELECT u.*, p.public_key FROM passkeys p JOIN users u USING (user_id)
    WHERE p.credential_id = :credential_id AND (NOT u.disabled OR u.deletion_by = 'user')"""
)
_RENAME = Statement("UPDATE passkeys SET name = :name WHERE user_id = :user_id AND id = :id RETURNING id")
_USE_CHALLENGE = """INSERT INTO used_passkey_challenges (digest, expires)
    VALUES (sha256(:challenge), to_timestamp(CAST(:expires AS float)))
    ON CONFLICT DO NOTHING RETURNING digest"""
USE_CHALLENGE = Statement(_USE_CHALLENGE)
# Of several uses of a challenge, one inserts its row. The counter of a passkey that counts must have advanced.
_RECORD_USE = Statement(
    f"""WITH used_challenge AS ({_USE_CHALLENGE}), used_passkey AS (
        UPDATE passkeys SET sign_count = :sign_count, last_used = now()
        WHERE credential_id = :credential_id AND EXISTS (SELECT FROM used_challenge)
            AND (sign_count < :sign_count OR (sign_count = 0 AND :sign_count = 0)) RETURNING id
    )
    SELECT EXISTS (SELECT FROM used_challenge) AS is_first_use, EXISTS (SELECT FROM used_passkey) AS has_advanced"""  # noqa: S608
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


@dataclass(frozen=True)
class RecordedUse:
    is_first_use: bool  # of the challenge
    has_advanced: bool  # the counter; False as well if the passkey was removed


class PasskeyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, user_id: str) -> list[Passkey]:
        rows = await self._database.rows(_LIST, user_id=user_id)
        return [Passkey(**{**dict(row), "transports": tuple(row["transports"])}) for row in rows]

    async def find(self, credential_id: bytes) -> PasskeyOwner | None:
        """Returns None if there is no such passkey or its user is disabled, and may not keep a closed account."""
        row = await self._database.row(_FIND, credential_id=credential_id)
        return PasskeyOwner(User.from_row(row), row["public_key"]) if row else None

    async def record_use(self, challenge: Challenge, credential_id: bytes, sign_count: int) -> RecordedUse:
        """Uses up the challenge and stores the counter, after the signature was verified."""
        row = await self._database.row(
            _RECORD_USE,
            challenge=challenge.raw,
            expires=float(challenge.expires + KEPT_S),
            credential_id=credential_id,
            sign_count=sign_count,
        )
        assert row is not None
        return RecordedUse(row["is_first_use"], row["has_advanced"])

    async def rename(self, user_id: str, passkey_id: str, name: str) -> bool:
        """Returns False if the user has no such passkey."""
        return await self._database.value(_RENAME, user_id=user_id, id=passkey_id, name=name) is not None


async def use_challenge(tx: Runner, challenge: Challenge) -> bool:
    """Returns False if the challenge was used before."""
    return await tx.value(USE_CHALLENGE, challenge=challenge.raw, expires=float(challenge.expires + KEPT_S)) is not None
