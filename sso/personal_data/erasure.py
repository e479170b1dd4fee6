"""Erases accounts whose time to be kept is over. Several workers may run it: each account is erased by one.

The claim on an account is a lease: if the worker dies, another one repeats the erasure, which has no effect twice.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import orjson
import structlog
import trio

from sso.accounts.model import User
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.tables import WITHOUT_FOREIGN_KEY

BEING_ERASED = "is being erased by a worker; try again in a few minutes"

INTERVAL_S = 60.0
LEASE_S = 600.0
AUDIT_ROWS = 5000  # that one statement reads
ERASURE_SECONDS = 30.0

_CLAIM = Statement(
    """UPDATE users SET deletion_due = now() + make_interval(secs => :lease), deletion_by = 'erasing'
    WHERE user_id = (
        SELECT user_id FROM users WHERE deletion_due <= now() AND disabled AND (:user_id = '' OR user_id = :user_id)
        ORDER BY deletion_due LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING user_id, login, deletion_due"""
)
_AUDIT_IDS = Statement("SELECT coalesce(min(id), 0) AS first, coalesce(max(id), -1) AS last FROM audit")
_ABOUT_USER = """((operation LIKE 'user.%' AND target = :user_id)
        OR (operation = 'permissions.save' AND target = application_id || '/' || :user_id))"""
# Entries about the user lose their values, entries by the user the address; other values lose the login. Logins of
# others that end or begin like this one stay: a user must not be able to change what the audit trail says about others.
_SCRUB_AUDIT = Statement(
    f"""UPDATE audit SET address = CASE user_id WHEN :user_id THEN '' ELSE address END,
        before = CASE WHEN NOT {_ABOUT_USER}
            THEN CAST(regexp_replace(CAST(before AS text), :pattern, 'erased', 'g') AS jsonb) END,
        after = CASE WHEN {_ABOUT_USER} THEN CAST('{{"erased"\\: true}}' AS jsonb)
            ELSE CAST(regexp_replace(CAST(after AS text), :pattern, 'erased', 'g') AS jsonb) END
    WHERE id >= :first AND id < :end AND (user_id = :user_id OR {_ABOUT_USER}
        OR position(:login IN CAST(before AS text)) > 0 OR position(:login IN CAST(after AS text)) > 0)"""
)
_LOCK_CLAIMED = Statement(
    """SELECT user_id FROM users WHERE user_id = :user_id AND deletion_by = 'erasing' AND deletion_due = :lease
    FOR UPDATE"""
)
_DELETE_ROWS = tuple(Statement(f"DELETE FROM {table} WHERE user_id = :user_id") for table in WITHOUT_FOREIGN_KEY)
_DELETE_MAILS = Statement(
    """WITH codes AS (DELETE FROM registration_codes WHERE login = :login)
    DELETE FROM outbox WHERE recipient = :login"""
)
_DELETE_USER = Statement("DELETE FROM users WHERE user_id = :user_id")
_REMEMBER = Statement("INSERT INTO erased_users (user_id) VALUES (:user_id) ON CONFLICT DO NOTHING")

log = structlog.get_logger()


@dataclass(frozen=True)
class ClaimedUser:
    user_id: str
    login: str
    deletion_due: datetime  # the end of the lease


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
        row = await self._database.row(_CLAIM, lease=LEASE_S, user_id=user_id)
        return ClaimedUser(**dict(row)) if row else None

    async def _erase(self, user: ClaimedUser, actor: AuditActor | None = None) -> bool:
        await self._scrub_audit(user)
        erased = await self._database.long_transaction(ERASURE_SECONDS, _delete_everything, user, actor)
        if erased:
            log.info("account.erased", user_id=user.user_id)
        return erased

    async def _scrub_audit(self, user: ClaimedUser) -> None:
        """Removes personal data from the audit trail, a few rows at a time: it may have millions of rows."""
        json_login = orjson.dumps(user.login).decode()[1:-1]  # as in the text of a JSON document
        ids = await self._database.row(_AUDIT_IDS)
        assert ids is not None
        for first in range(ids["first"], ids["last"] + 1, AUDIT_ROWS):
            rows = {"first": first, "end": first + AUDIT_ROWS}
            await self._database.value(
                _SCRUB_AUDIT, user_id=user.user_id, login=json_login, pattern=_whole_login(json_login), **rows
            )


def _whole_login(login: str) -> str:
    """Returns the regular expression of PostgreSQL that matches the login, but not a part of a longer address.

    Before the login may be a line break, which JSON writes as a backslash and a letter.
    """
    escaped = re.sub(r"([^\w\x80-\U0010ffff])", r"\\\1", login)
    return rf"(?:(?<![\w.!#$%&'*+/=?^`{{|}}~-])|(?<=\\[bfnrt])){escaped}(?!\w|[.-]\w)"


async def _delete_everything(tx: Transaction, user: ClaimedUser, actor: AuditActor | None) -> bool:
    """Deletes all rows of the user. Returns False if another worker has the claim, or has erased the account."""
    if await tx.value(_LOCK_CLAIMED, user_id=user.user_id, lease=user.deletion_due) is None:
        return False
    for statement in _DELETE_ROWS:
        await tx.value(statement, user_id=user.user_id)
    await tx.value(_DELETE_MAILS, login=user.login)
    await tx.value(_REMEMBER, user_id=user.user_id)
    await tx.value(_DELETE_USER, user_id=user.user_id)
    await record_changes(tx, [Change(ChangeType.USER_ERASED, user.user_id)])
    await trail.write(tx, actor or AuditActor(), "user.erase", user.user_id, None, {"erased": True})
    return True


async def erase_at_once(
    deletion: AccountDeletion,
    erasure: AccountErasure,
    user: User,
    actor: AuditActor,
    precondition: Callable[[User], None] = lambda _user: None,
) -> bool:
    """Closes the account and erases it. Returns False if a worker is erasing it.

    Raises DeletionRefused for the last administrator. ``precondition`` is that of `AccountDeletion.request`.
    """
    if user.deletion_by != "erasing":
        await deletion.request(user, None, by="operator", days=0, precondition=precondition)
        await deletion.make_due(user.user_id)
    return await erasure.erase_now(user.user_id, actor)
