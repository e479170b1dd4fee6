"""Disables and enables a user: the one operation for the console, the management API, documents and commands."""

from typing import Any

from sso.accounts.model import User
from sso.accounts.user_change_store import write_disabled
from sso.accounts.user_store import lock_user, revoke_everything
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.db.transaction import Transaction

FIELDS = ("disabled", "deletion_due", "deletion_by")  # those that change


async def set_disabled(tx: Transaction, user_id: str, *, disabled: bool) -> dict[str, Any]:
    """Returns the fields that changed, with their values before.

    Disabling revokes everything issued before, and only an operator can keep the account if it is going to be deleted.
    Enabling restores nothing that was issued, and cancels a deletion.
    """
    old = await lock_user(tx, user_id)
    assert old is not None  # the caller has read the user
    new = await write_disabled(tx, user_id, disabled=disabled)
    before = {name: getattr(old, name) for name in FIELDS if getattr(old, name) != getattr(new, name)}
    if "disabled" in before:
        await record_changes(tx, [_change(old, disabled=disabled)])
    if before and disabled:
        await revoke_everything(tx, user_id)
    return before


def _change(old: User, *, disabled: bool) -> Change:
    if disabled:
        return Change(ChangeType.USER_DISABLED, old.user_id)
    if old.deletion_due:
        return Change(ChangeType.USER_RESTORED, old.user_id, data={"disabled": False})
    return Change(ChangeType.USER_ENABLED, old.user_id)
