"""Adding and removing passkeys. The first one turns on a second factor; removing one ends all sessions."""

import hashlib
from collections.abc import Awaitable, Callable

from sso.accounts.errors import LastWayToSignIn
from sso.accounts.history.events import EventKind
from sso.accounts.model import User
from sso.accounts.passkeys.challenges import Challenge
from sso.accounts.passkeys.credential import PasskeyAnswer
from sso.accounts.passkeys.store import (
    count_passkey_down,
    count_passkey_up,
    delete_passkey,
    insert_passkey,
)
from sso.accounts.passkeys.verification import NewCredential
from sso.accounts.second_factor.changes import FactorChange, SecondFactorChanges
from sso.accounts.user_store import can_sign_in
from sso.core.ids import record_id
from sso.core.language import Text
from sso.db.database import Database
from sso.db.transaction import Transaction

MAX_PASSKEYS = 20  # for one user
FACTOR = "passkey"
ADDED = Text("A passkey was added to your account.")
REMOVED = Text("A passkey was removed from your account.")


class PasskeyNotChanged(Exception):
    """Rolls the transaction back: the passkey exists already, or does not exist."""


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
            if not await count_passkey_up(tx, user, handle, MAX_PASSKEYS):
                return None
            if not await insert_passkey(tx, record_id(), user.user_id, new, name, answer.transports):
                raise PasskeyNotChanged
            revoke = user.passkey_count == 0
            return await self._factor_changes.finish(
                tx, user, FACTOR, ADDED, EventKind.PASSKEY_ADDED, revoke=revoke, name=name
            )

        return await self._run(work)

    async def remove(self, user: User, passkey_id: str) -> FactorChange | None:
        """Raises LastWayToSignIn."""

        async def work(tx: Transaction) -> FactorChange | None:
            if not await count_passkey_down(tx, user):
                return None
            name = await delete_passkey(tx, user.user_id, passkey_id)
            if name is None:
                raise PasskeyNotChanged
            if not await can_sign_in(tx, user.user_id):
                raise LastWayToSignIn  # the transaction is rolled back
            return await self._factor_changes.finish(
                tx, user, FACTOR, REMOVED, EventKind.PASSKEY_REMOVED, revoke=True, name=name
            )

        return await self._run(work)

    async def _run(self, work: Callable[[Transaction], Awaitable[FactorChange | None]]) -> FactorChange | None:
        try:
            return await self._database.transaction(work)
        except PasskeyNotChanged:
            return None


def user_handle(user: User, challenge: bytes) -> bytes:
    """Returns the handle by which passkeys know the user: random, and the same for all passkeys of the user.

    The first passkey gets it from the random challenge of its registration, so that nothing is stored before.
    """
    return user.passkey_handle or hashlib.sha256(b"passkey user handle" + challenge).digest()
