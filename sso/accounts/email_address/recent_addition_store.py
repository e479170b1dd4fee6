"""Removes what was added to an account shortly before its address was changed, and since.

A thief adds ways to sign in again. When the owner undoes the change of the address, they are removed: passkeys, the
authenticator app, recovery codes, keys of devices, linked identities and a new password. Older ones stay, so that a
stranger who can only read the mails to the old address does not get past the second factor of the owner.
"""

from datetime import datetime

from sso.accounts.history.events import SUPPORT, EventKind, record_event
from sso.accounts.second_factor.earlier_factors import TOTP, earlier_factors
from sso.accounts.second_factor.recovery_codes import FACTOR as RECOVERY
from sso.accounts.second_factor.store import delete_recovery_codes
from sso.accounts.user_store import get_user
from sso.db.statement import Statement
from sso.db.transaction import Transaction

BEFORE_CHANGE_S = 86400

_DELETE_PASSKEYS = Statement("DELETE FROM passkeys WHERE user_id = :user_id AND created >= :since RETURNING name")
_COUNT_PASSKEYS = Statement(
    """UPDATE users SET passkey_count = (SELECT count(*) FROM passkeys p WHERE p.user_id = users.user_id)
    WHERE user_id = :user_id"""
)
_DELETE_KEYS = Statement("DELETE FROM device_keys WHERE user_id = :user_id AND created >= :since RETURNING id")
_DELETE_IDENTITIES = Statement(
    """DELETE FROM linked_identities l USING identity_providers p
    WHERE l.user_id = :user_id AND p.provider_id = l.provider_id AND l.created >= :since RETURNING p.name"""
)
_HAS_EVENT = Statement(
    """SELECT EXISTS (SELECT FROM account_events WHERE user_id = :user_id AND at >= :since
        AND kind = ANY (CAST(:kinds AS text[])) AND detail ->> 'by' IS DISTINCT FROM :support)"""
)
_REMOVE_TOTP = Statement(
    """UPDATE users SET totp_sealed = NULL, totp_last_step = 0
    WHERE user_id = :user_id AND totp_sealed IS NOT NULL RETURNING user_id"""
)
_REMOVE_PASSWORD = Statement("UPDATE users SET password_hash = NULL WHERE user_id = :user_id")
_DELETE_EARLIER_KEYS = Statement(
    """DELETE FROM device_keys k USING users u
    WHERE k.user_id = :user_id AND u.user_id = k.user_id AND k.created < u.email_verified_at RETURNING k.id"""
)
_DELETE_EARLIER_IDENTITIES = Statement(
    """DELETE FROM linked_identities l USING identity_providers p, users u
    WHERE l.user_id = :user_id AND u.user_id = l.user_id AND p.provider_id = l.provider_id
        AND l.created < u.email_verified_at RETURNING p.name"""
)


async def remove_recent_additions(tx: Transaction, user_id: str, since: datetime) -> None:
    """The caller has locked the user, and lets the owner choose a password."""
    earlier = await earlier_factors(tx, user_id, since)
    for row in await tx.rows(_DELETE_PASSKEYS, user_id=user_id, since=since):
        await record_event(tx, user_id, EventKind.PASSKEY_REMOVED, name=row["name"])
    await tx.value(_COUNT_PASSKEYS, user_id=user_id)
    for _ in await tx.rows(_DELETE_KEYS, user_id=user_id, since=since):
        await record_event(tx, user_id, EventKind.DEVICE_KEY_REMOVED)
    for row in await tx.rows(_DELETE_IDENTITIES, user_id=user_id, since=since):
        await record_event(tx, user_id, EventKind.IDENTITY_UNLINKED, name=row["name"])
    if TOTP not in earlier.names and await tx.value(_REMOVE_TOTP, user_id=user_id):
        await record_event(tx, user_id, EventKind.TOTP_REMOVED)
    if await _happened(tx, user_id, since, EventKind.PASSWORD_CHANGED, EventKind.PASSWORD_RESET):
        await tx.value(_REMOVE_PASSWORD, user_id=user_id)
    user = await get_user(tx, user_id)
    if not user.second_factors or RECOVERY not in earlier.names:
        await delete_recovery_codes(tx, user_id)


async def _happened(tx: Transaction, user_id: str, since: datetime, *kinds: EventKind) -> bool:
    happened: bool = await tx.value(_HAS_EVENT, user_id=user_id, since=since, kinds=list(kinds), support=SUPPORT)
    return happened


# A stranger may have registered an account, linked an identity to it and then used the address of another person. When
# that person gets the account by a reset of the password, the stranger must not keep a way in. Second factors need no
# such rule: a reset asks for them, so the person who resets the password has them.
async def remove_earlier_links(tx: Transaction, user_id: str) -> None:
    """Removes keys and identities from before the address was verified. The caller has locked the user."""
    for _ in await tx.rows(_DELETE_EARLIER_KEYS, user_id=user_id):
        await record_event(tx, user_id, EventKind.DEVICE_KEY_REMOVED)
    for row in await tx.rows(_DELETE_EARLIER_IDENTITIES, user_id=user_id):
        await record_event(tx, user_id, EventKind.IDENTITY_UNLINKED, name=row["name"])
