"""Erases accounts whose time to be kept is over. Several workers may run it: each account is erased by one.

The claim on an account is a lease: if the worker dies, another one repeats the erasure, which has no effect twice.
"""

import random

import structlog
import trio

from sso.accounts.model import User
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.transaction import Transaction
from sso.personal_data.deletion import AccountDeletion, ClosePrecondition, always
from sso.personal_data.erasure_store import (
    ClaimedUser,
    audit_ids,
    claim_account,
    erase_account,
    scrub_audit,
    scrub_audit_of_guest,
    with_merged_users,
)

BEING_ERASED = "is being erased by a worker; try again in a few minutes"

INTERVAL_S = 60.0
LEASE_S = 600.0
AUDIT_ROWS = 5000  # that one statement reads
ERASURE_SECONDS = 30.0


log = structlog.get_logger()


class AccountErasure:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await trio.sleep(INTERVAL_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter between workers
            try:
                await self.erase_due()
            except DatabaseError as error:
                log.warning("account.erasure_failed", reason=str(error))

    async def erase_due(self) -> int:
        """Erases the accounts that are due. Returns how many this worker has erased. A failure concerns one account."""
        erased = 0
        while claimed := await self._claim():
            try:
                erased += await self._erase(claimed)
            except DatabaseError:
                raise
            except Exception as error:
                log.error("account.erasure_failed", user_id=claimed.user_id, reason=type(error).__name__)
        return erased

    async def erase_now(self, user_id: str, actor: AuditActor) -> bool:
        """Erases one account that is due, for an operator. Returns False if it is not due, or is being erased."""
        claimed = await self._claim(user_id)
        return claimed is not None and await self._erase(claimed, actor)

    async def _claim(self, user_id: str = "") -> ClaimedUser | None:
        return await claim_account(self._database, LEASE_S, user_id)

    async def _erase(self, user: ClaimedUser, actor: AuditActor | None = None) -> bool:
        for person in await with_merged_users(self._database, user):
            await self._scrub_audit(person)
        erased = await self._database.long_transaction(ERASURE_SECONDS, _delete_everything, user, actor)
        if erased:
            log.info("account.erased", user_id=user.user_id)
        return erased

    async def _scrub_audit(self, user: ClaimedUser) -> None:
        """Removes personal data from the audit trail, a few rows at a time: it may have millions of rows."""
        if not user.login:
            await scrub_audit_of_guest(self._database, user.user_id)
            return
        first_id, last_id = await audit_ids(self._database)
        for first in range(first_id, last_id + 1, AUDIT_ROWS):
            await scrub_audit(self._database, user, first, first + AUDIT_ROWS)


async def _delete_everything(tx: Transaction, user: ClaimedUser, actor: AuditActor | None) -> bool:
    """Deletes all rows of the user. Returns False if another worker has the claim, or has erased the account."""
    user_ids = await erase_account(tx, user)
    if not user_ids:
        return False
    await record_changes(tx, [Change(ChangeType.USER_ERASED, user_id) for user_id in user_ids])
    await trail.write(tx, actor or AuditActor(), "user.erase", user.user_id, None, {"erased": True})
    return True


async def erase_at_once(
    deletion: AccountDeletion,
    erasure: AccountErasure,
    user: User,
    actor: AuditActor,
    precondition: ClosePrecondition = always,
) -> bool:
    """Closes the account and erases it. Returns False if a worker is erasing it.

    Raises DeletionRefused for the last administrator. ``precondition`` is that of `AccountDeletion.request`.
    """
    if user.deletion_by != "erasing":
        await deletion.request(user, None, by="operator", days=0, precondition=precondition)
        await deletion.make_due(user.user_id)
    return await erasure.erase_now(user.user_id, actor)
