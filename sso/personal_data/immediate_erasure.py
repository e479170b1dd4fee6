"""Erases an account at once, for an operator."""

from collections.abc import Callable

from sso.accounts.model import User
from sso.audit.trail import AuditActor
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import AccountErasure

BEING_ERASED = "is being erased by a worker; try again in a few minutes"


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
