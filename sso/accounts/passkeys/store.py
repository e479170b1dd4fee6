"""Passkeys in the database."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.accounts.model import User
from sso.accounts.passkeys.challenges import Challenge
from sso.accounts.passkeys.verification import NewCredential
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner

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
_COUNT_UP = Statement(
    """UPDATE users SET passkey_count = passkey_count + 1, passkey_handle = :handle
    WHERE user_id = :user_id AND valid_from = :valid_from AND NOT disabled AND passkey_count < :max_passkeys
        AND coalesce(passkey_handle, :handle) = :handle RETURNING user_id"""
)
_COUNT_DOWN = Statement(
    """UPDATE users SET passkey_count = passkey_count - 1
    WHERE user_id = :user_id AND valid_from = :valid_from AND passkey_count > 0 RETURNING user_id"""
)
_INSERT = Statement(
    """INSERT INTO passkeys (id, credential_id, user_id, public_key, sign_count, name, transports)
    VALUES (:id, :credential_id, :user_id, :public_key, :sign_count, :name, :transports)
    ON CONFLICT (credential_id) DO NOTHING RETURNING id"""
)
_DELETE = Statement("DELETE FROM passkeys WHERE user_id = :user_id AND id = :id RETURNING name")


class Passkey(Struct, frozen=True):
    """A passkey in the list of the account page."""

    id: str
    credential_id: bytes
    name: str
    transports: tuple[str, ...]
    created: datetime
    last_used: datetime | None


class PasskeyOwner(Struct, frozen=True):
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


async def count_passkey_up(tx: Runner, user: User, handle: bytes, max_passkeys: int) -> bool:
    """Returns False if the user was revoked since it was read, has too many passkeys, or another handle."""
    values = {"user_id": user.user_id, "valid_from": user.valid_from, "max_passkeys": max_passkeys}
    return await tx.value(_COUNT_UP, handle=handle, **values) is not None


async def count_passkey_down(tx: Runner, user: User) -> bool:
    """Returns False if the user was revoked since it was read, or has no passkey."""
    return await tx.value(_COUNT_DOWN, user_id=user.user_id, valid_from=user.valid_from) is not None


async def insert_passkey(
    tx: Runner, passkey_id: str, user_id: str, new: NewCredential, name: str, transports: Sequence[str]
) -> bool:
    """Returns False if the credential exists already."""
    added = await tx.value(
        _INSERT,
        id=passkey_id,
        credential_id=new.credential_id,
        user_id=user_id,
        public_key=new.public_key,
        sign_count=new.sign_count,
        name=name,
        transports=list(transports),
    )
    return added is not None


async def delete_passkey(tx: Runner, user_id: str, passkey_id: str) -> str | None:
    """Returns the name of the passkey, or None if the user has no such passkey."""
    name: str | None = await tx.value(_DELETE, user_id=user_id, id=passkey_id)
    return name


def _challenge_values(challenge: Challenge) -> dict[str, Any]:
    return {"challenge": challenge.raw, "expires": float(challenge.expires + KEPT_S)}
