"""Erases guests who have not been seen for a long time, as deleted accounts are erased."""

import random

import structlog
import trio

from sso.accounts.model import User
from sso.accounts.user_store import find_user
from sso.audit.trail import AuditActor
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.transaction import Transaction
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import AccountErasure, erase_at_once
from sso.players.device_key_store import BEFORE_ALL_KEYS, is_unseen, unseen_guests
from sso.players.merge_store import finish_merges

INTERVAL_S = 60.0
MAX_GUESTS = 100  # per interval and worker

log = structlog.get_logger()


class _GuestCameBack(Exception):
    """The guest has signed in since the list of guests who were not seen was read."""


class GuestExpiry:
    def __init__(self, database: Database, deletion: AccountDeletion, erasure: AccountErasure, days: int) -> None:
        self._database = database
        self._deletion = deletion
        self._erasure = erasure
        self._days = days
        self._position = BEFORE_ALL_KEYS  # where the next interval goes on

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await trio.sleep(INTERVAL_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter between workers
            try:
                await self.erase_unseen()
            except DatabaseError as error:
                log.warning("guests.erasure_failed", reason=str(error))

    async def erase_unseen(self) -> int:
        """Returns how many guests this worker has erased. A failure concerns one guest.

        Also ends what is kept to undo merges, after their time.
        """
        await finish_merges(self._database)
        erased = 0
        guests, position = await unseen_guests(self._database, self._days, MAX_GUESTS, self._position)
        for user_id in guests:
            try:
                erased += await self._erase(user_id)
            except DatabaseError:
                raise
            except Exception as error:
                log.error("guests.erasure_failed", user_id=user_id, reason=type(error).__name__)
        self._position = position
        return erased

    async def _erase(self, user_id: str) -> bool:
        """Returns False if the guest has come back, or another worker erases the guest or has done so."""
        user = await find_user(self._database, user_id)
        if user is None:
            return False
        try:
            return await erase_at_once(self._deletion, self._erasure, user, AuditActor(), self._require_unseen)
        except _GuestCameBack:
            return False

    async def _require_unseen(self, tx: Transaction, user: User) -> None:
        """The guest is locked, so a sign-in has either ended before, or finds the account closed."""
        if not await is_unseen(tx, user.user_id, self._days):
            raise _GuestCameBack
