"""Removes identities at other providers that were linked before the address of the account was verified.

A stranger may have registered an account, linked an identity to it and then used the address of another person. When
that person gets the account by a reset of the password, the stranger must not keep a way in. Second factors need no
such rule: a reset asks for them, so the person who resets the password has them.
"""

from sso.accounts.history.events import EventKind, record_event
from sso.db.statement import Statement
from sso.db.transaction import Transaction

_DELETE = Statement(
    """DELETE FROM linked_identities l USING identity_providers p, users u
    WHERE l.user_id = :user_id AND u.user_id = l.user_id AND p.provider_id = l.provider_id
        AND l.created < u.email_verified_at RETURNING p.name"""
)


async def remove_earlier_identities(tx: Transaction, user_id: str) -> None:
    """The caller has locked the user, whose address is verified."""
    for row in await tx.rows(_DELETE, user_id=user_id):
        await record_event(tx, user_id, EventKind.IDENTITY_UNLINKED, name=row["name"])
