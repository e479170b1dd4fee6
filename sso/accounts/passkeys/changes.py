"""Adding and removing passkeys. The first one turns on a second factor; removing one ends all sessions."""

import hashlib
from collections.abc import Awaitable, Callable

from sso.accounts.history.events import EventKind
from sso.accounts.model import User
from sso.accounts.passkeys.challenges import Challenge
from sso.accounts.passkeys.credential import PasskeyAnswer
from sso.accounts.passkeys.verification import NewCredential
from sso.accounts.second_factor.changes import FactorChange, SecondFactorChanges
from sso.accounts.user_store import can_sign_in
from sso.core.ids import record_id
from sso.core.language import Text
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

MAX_PASSKEYS = 20  # for one user
FACTOR = "passkey"
ADDED = Text("A passkey was added to your account.")
REMOVED = Text("A passkey was removed from your account.")

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


class PasskeyNotChanged(Exception):
    """Rolls the transaction back: the passkey exists already, does not exist, or is the last way to sign in."""


class PasskeyChanges:
    """Each method returns None if nothing was changed."""

    def __init__(self, database: Database, factor_changes: SecondFactorChanges) -> None:
        self._database = database
        self._factor_changes = factor_changes

    async def add(
        self, user: User, challenge: Challenge, answer: PasskeyAnswer, new: NewCredential, name: str
    ) -> FactorChange | None:
        """Adds a passkey whose registration was verified."""

        async def work(tx: Transaction) -> FactorChange | None:
            handle = user_handle(user, challenge.raw)
            values = {"user_id": user.user_id, "valid_from": user.valid_from, "max_passkeys": MAX_PASSKEYS}
            if await tx.value(_COUNT_UP, handle=handle, **values) is None:
                return None
            added = await tx.value(
                _INSERT,
                id=record_id(),
                credential_id=new.credential_id,
                user_id=user.user_id,
                public_key=new.public_key,
                sign_count=new.sign_count,
                name=name,
                transports=list(answer.transports),
            )
            if added is None:
                raise PasskeyNotChanged
            revoke = user.passkey_count == 0
            return await self._factor_changes.finish(
                tx, user, FACTOR, ADDED, EventKind.PASSKEY_ADDED, revoke=revoke, name=name
            )

        return await self._run(work)

    async def remove(self, user: User, passkey_id: str) -> FactorChange | None:
        async def work(tx: Transaction) -> FactorChange | None:
            if await tx.value(_COUNT_DOWN, user_id=user.user_id, valid_from=user.valid_from) is None:
                return None
            name = await tx.value(_DELETE, user_id=user.user_id, id=passkey_id)
            if name is None or not await can_sign_in(tx, user.user_id):
                raise PasskeyNotChanged
            return await self._factor_changes.finish(
                tx, user, FACTOR, REMOVED, EventKind.PASSKEY_REMOVED, revoke=True, name=name
            )

        return await self._run(work)

    async def _run(self, work: Callable[[Transaction], Awaitable[FactorChange | None]]) -> FactorChange | None:
        try:
            change = await self._database.transaction(work)
        except PasskeyNotChanged:
            return None
        self._factor_changes.wake_senders()
        return change


def user_handle(user: User, challenge: bytes) -> bytes:
    """Returns the handle by which passkeys know the user: random, and the same for all passkeys of the user.

    The first passkey gets it from the random challenge of its registration, so that nothing is stored before.
    """
    return user.passkey_handle or hashlib.sha256(b"passkey user handle" + challenge).digest()
