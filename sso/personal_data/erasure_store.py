"""The end of accounts in the database: they are closed, perhaps kept, and erased."""

import re
from datetime import datetime

import orjson
from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.bans.identity_store import forget_erased_user
from sso.accounts.mailed_link_store import delete_links_to_address
from sso.accounts.merged_user_store import IDS_WITH_MERGED
from sso.accounts.model import login_key
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.personal_data.games.request_store import add_removals
from sso.personal_data.games.used_application_store import used_applications
from sso.personal_data.tables import WITHOUT_FOREIGN_KEY
from sso.signals.recording import record_purged_account
from sso.signals.recording_store import forget_addresses

_CLOSE = Statement(
    """UPDATE users SET deletion_due = now() + make_interval(days => :days), disabled = true,
        deletion_by = CASE WHEN disabled THEN 'disabled' ELSE :by END
    WHERE user_id = :user_id AND deletion_due IS NULL
        AND coalesce(CAST(:valid_from AS bigint), valid_from) = valid_from
    RETURNING deletion_due"""
)
_KEEP = Statement(
    """UPDATE users SET deletion_due = NULL, deletion_by = NULL, disabled = false
    WHERE user_id = :user_id AND valid_from = :valid_from AND deletion_by = 'user' AND deletion_due > now()
    RETURNING user_id"""
)
# The erasure has begun if `deletion_by` is "erasing".
_RESTORE = Statement(
    """UPDATE users SET deletion_due = NULL, deletion_by = NULL, disabled = (deletion_by = 'disabled')
    WHERE user_id = :user_id AND deletion_by <> 'erasing' RETURNING user_id"""
)
_MAKE_DUE = Statement(
    """UPDATE users SET deletion_due = least(deletion_due, now())
    WHERE user_id = :user_id AND deletion_due IS NOT NULL AND deletion_by <> 'erasing'"""
)
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
# Addresses that were invited or looked up when they had no user.
_ADDRESSES = Statement(
    "SELECT DISTINCT target FROM audit WHERE id >= :first AND id < :end AND position('@' IN target) > 0"
)
# Entries about the user lose their values, entries by the user the address; targets and other values lose the login.
# Logins of others that end or begin like this one stay: a user must not be able to change what the audit trail says
# about others.
_SCRUB_AUDIT = Statement(
    f"""UPDATE audit SET address = CASE user_id WHEN :user_id THEN '' ELSE address END,
        target = CASE WHEN target = ANY (CAST(:logins AS text[])) THEN 'erased' ELSE target END,
        before = CASE WHEN NOT {_ABOUT_USER}
            THEN CAST(regexp_replace(CAST(before AS text), :pattern, 'erased', 'g') AS jsonb) END,
        after = CASE WHEN {_ABOUT_USER} THEN CAST('{{"erased"\\: true}}' AS jsonb)
            ELSE CAST(regexp_replace(CAST(after AS text), :pattern, 'erased', 'g') AS jsonb) END
    WHERE id >= :first AND id < :end AND (user_id = :user_id OR {_ABOUT_USER}
        OR target = ANY (CAST(:logins AS text[]))
        OR position(:login IN CAST(before AS text)) > 0 OR position(:login IN CAST(after AS text)) > 0)"""
)
# A guest has no login that entries about others could contain, so the indexes find all entries at once.
_SCRUB_AUDIT_OF_GUEST = Statement(
    f"""UPDATE audit SET address = CASE user_id WHEN :user_id THEN '' ELSE address END,
        before = CASE WHEN NOT {_ABOUT_USER} THEN before END,
        after = CASE WHEN {_ABOUT_USER} THEN CAST('{{"erased"\\: true}}' AS jsonb) ELSE after END
    WHERE user_id = :user_id OR (operation LIKE 'user.%' AND target = :user_id)
        OR (operation = 'permissions.save' AND split_part(target, '/', 2) = :user_id)"""
)
_LOCK_CLAIMED = Statement(
    """SELECT user_id FROM users WHERE user_id = :user_id AND deletion_by = 'erasing' AND deletion_due = :lease
    FOR UPDATE"""
)
# Users who were merged into this one are erased with it. The rows that others delete by adding used_applications come
# first: an unfinished deletion of them is waited for, so that its used_applications are deleted, too.
_DELETE_ROWS = tuple(
    Statement(f"DELETE FROM {table} WHERE user_id = ANY (ARRAY({IDS_WITH_MERGED}))")
    for table in ("account_events", "oauth_consents", "oauth_grants", *WITHOUT_FOREIGN_KEY)
)
_DELETE_MAILS = Statement(
    """WITH codes AS (DELETE FROM registration_codes WHERE login = :login)
    DELETE FROM outbox WHERE recipient = :login"""
)
_CLAIMED = Statement(f"SELECT user_id, login FROM users WHERE user_id = ANY (ARRAY({IDS_WITH_MERGED}))")
_DELETE_USER = Statement("DELETE FROM users WHERE user_id = :user_id")
_REMEMBER = Statement(f"INSERT INTO erased_users (user_id) {IDS_WITH_MERGED} ON CONFLICT DO NOTHING")


class ClaimedUser(Struct, frozen=True):
    user_id: str
    login: str
    deletion_due: datetime  # the end of the lease


async def close_account(tx: Transaction, user_id: str, valid_from: int | None, days: int, by: str) -> datetime | None:
    """Returns when the account will be erased, or None if it is closed already or has another ``valid_from``."""
    due: datetime | None = await tx.value(_CLOSE, user_id=user_id, valid_from=valid_from, days=days, by=by)
    return due


async def keep_account(tx: Transaction, user_id: str, valid_from: int) -> bool:
    """Cancels the deletion that the user has requested. Of several concurrent calls, one returns True."""
    return await tx.value(_KEEP, user_id=user_id, valid_from=valid_from) is not None


async def restore_account(tx: Transaction, user_id: str) -> bool:
    """Cancels a deletion. Returns False if none is pending, or the erasure has begun."""
    return await tx.value(_RESTORE, user_id=user_id) is not None


async def make_erasure_due(runner: Runner, user_id: str) -> None:
    """Ends the time in which a closed account can be kept."""
    await runner.value(_MAKE_DUE, user_id=user_id)


async def claim_account(runner: Runner, lease_s: float, user_id: str = "") -> ClaimedUser | None:
    """Returns an account that is due, or this one if it is. No other worker can claim it until the lease ends."""
    row = await runner.row(_CLAIM, lease=lease_s, user_id=user_id)
    return ClaimedUser(**dict(row)) if row else None


async def with_merged_users(runner: Runner, user: ClaimedUser) -> list[ClaimedUser]:
    """Returns the user and all who were merged into it, who are erased with it."""
    rows = await runner.rows(_CLAIMED, user_id=user.user_id)
    return [replace(user, user_id=row["user_id"], login=row["login"]) for row in rows]


async def audit_ids(runner: Runner) -> tuple[int, int]:
    """Returns the first and the last id of the audit trail."""
    row = await runner.row(_AUDIT_IDS)
    assert row is not None
    return row["first"], row["last"]


async def scrub_audit(runner: Runner, user: ClaimedUser, first: int, end: int) -> None:
    """Removes personal data of the user from the entries with these ids."""
    rows, key = await runner.rows(_ADDRESSES, first=first, end=end), login_key(user.login)
    logins = [row["target"] for row in rows if login_key(row["target"]) == key]
    json_login = orjson.dumps(user.login).decode()[1:-1]  # as in the text of a JSON document
    values = {"user_id": user.user_id, "login": json_login, "pattern": _whole_login(json_login), "logins": logins}
    await runner.value(_SCRUB_AUDIT, **values, first=first, end=end)


async def scrub_audit_of_guest(runner: Runner, user_id: str) -> None:
    """Removes personal data of a guest from all entries."""
    await runner.value(_SCRUB_AUDIT_OF_GUEST, user_id=user_id)


async def erase_account(tx: Transaction, user: ClaimedUser) -> list[str]:
    """Deletes all rows of the user and of users who were merged into it, and tells the clients. Returns their ids.

    Asks the games that the user has used to remove theirs. Returns no id if another worker has the claim, or has erased
    the account.
    """
    if await tx.value(_LOCK_CLAIMED, user_id=user.user_id, lease=user.deletion_due) is None:
        return []
    applications = await used_applications(tx, user.user_id)
    people = await with_merged_users(tx, user)
    for person in people:
        await record_purged_account(tx, person.user_id)
    for statement in _DELETE_ROWS:
        await tx.value(statement, user_id=user.user_id)
    for person in people:
        await forget_addresses(tx, person.user_id)
        if person.login:
            await tx.value(_DELETE_MAILS, login=person.login)
            await delete_links_to_address(tx, person.login)
        await forget_erased_user(tx, person.user_id)
    await tx.value(_REMEMBER, user_id=user.user_id)
    await tx.value(_DELETE_USER, user_id=user.user_id)
    await add_removals(tx, applications)
    return [person.user_id for person in people]


def _whole_login(login: str) -> str:
    """Returns the regular expression of PostgreSQL that matches the login, but not a part of a longer address.

    Before the login may be a line break, which JSON writes as a backslash and a letter.
    """
    escaped = re.sub(r"([^\w\x80-\U0010ffff])", r"\\\1", login)
    return rf"(?:(?<![\w.!#$%&'*+/=?^`{{|}}~-])|(?<=\\[bfnrt])){escaped}(?!\w|[.-]\w)"
