"""Changes of single attributes of users, in the transactions of the operations that they are a part of."""

from sso.accounts.model import User, login_key
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

# Disabling a closed account keeps its user from keeping it. Enabling one cancels the deletion.
_SET_DISABLED = Statement(
    """UPDATE users SET disabled = :disabled,
        deletion_due = CASE WHEN :disabled THEN deletion_due END,
        deletion_by = CASE WHEN :disabled AND deletion_by IN ('user', 'operator') THEN 'disabled'
            WHEN :disabled THEN deletion_by END
    WHERE user_id = :user_id RETURNING *"""
)
_SET_PASSWORD = Statement(
    """UPDATE users SET password_hash = :password_hash
    WHERE user_id = :user_id AND valid_from = coalesce(CAST(:valid_from AS bigint), valid_from) RETURNING user_id"""
)
# Returns a row for the first sign-in of the user, for which no notice is sent.
_MARK_FIRST = Statement(
    "UPDATE users SET first_sign_in = now() WHERE user_id = :user_id AND first_sign_in IS NULL RETURNING user_id"
)
_TURN_NOTICES = Statement(
    """UPDATE users SET sign_in_notices = :on
    WHERE user_id = :user_id AND sign_in_notices <> :on RETURNING user_id"""
)
_MARK_VERIFIED = Statement(
    """UPDATE users SET email_verified = true
    WHERE user_id = :user_id AND login_key = :login_key AND NOT email_verified RETURNING user_id"""
)
_VERIFIED_AT = Statement(
    "SELECT CAST(extract(epoch FROM email_verified_at) AS double precision) FROM users WHERE user_id = :user_id"
)
# The unique index of login_key decides whether the address is free.
_SET_LOGIN = Statement(
    """UPDATE users SET login = :login, login_key = :login_key, email_verified = true
    WHERE user_id = :user_id AND (login_key = :old_key OR CAST(:old_key AS text) IS NULL) RETURNING user_id"""
)
_LOGIN = Statement("SELECT login FROM users WHERE user_id = :user_id")
# A deletion that was requested on the account page. The one who has requested it may be the thief.
_CANCEL_DELETION = Statement(
    """UPDATE users SET deletion_due = NULL, deletion_by = NULL, disabled = false
    WHERE user_id = :user_id AND deletion_by = 'user' AND deletion_due > now() RETURNING user_id"""
)
# The address was verified before the change; what was linked since then was linked by its owner.
_RESTORE_VERIFIED_AT = Statement(
    """UPDATE users SET email_verified_at = to_timestamp(CAST(:verified_at AS double precision))
    WHERE user_id = :user_id"""
)
# Requests for the same account wait for each other here. The user of a closed account may still keep it.
_LOCK_FOR_RESET = Statement(
    """SELECT user_id, login, deletion_due FROM users
    WHERE login_key = :login_key AND (NOT disabled OR deletion_by = 'user' AND deletion_due > now())
    FOR NO KEY UPDATE"""
)


async def write_disabled(tx: Transaction, user_id: str, *, disabled: bool) -> User:
    """Returns the changed user, who exists."""
    return User.from_row(await tx.row(_SET_DISABLED, user_id=user_id, disabled=disabled))


async def set_password(tx: Runner, user_id: str, password_hash: str, valid_from: int | None) -> bool:
    """Returns False if the user has another ``valid_from``. None is any."""
    values = {"user_id": user_id, "password_hash": password_hash, "valid_from": valid_from}
    return await tx.value(_SET_PASSWORD, **values) is not None


async def mark_first_sign_in(tx: Runner, user_id: str) -> bool:
    """Returns True for the first sign-in of the user."""
    return bool(await tx.value(_MARK_FIRST, user_id=user_id))


async def turn_notices(tx: Runner, user_id: str, *, on: bool) -> bool:
    """Turns sign-in notices on or off. Returns False if they are already."""
    return bool(await tx.value(_TURN_NOTICES, user_id=user_id, on=on))


async def set_verified(tx: Runner, user_id: str, key: str) -> bool:
    """Marks the address with this login key as verified. Returns False if it is already, or no longer the user's."""
    return bool(await tx.value(_MARK_VERIFIED, user_id=user_id, login_key=key))


async def read_verified_at(tx: Runner, user_id: str) -> float | None:
    """Returns when the address was verified, in Unix seconds."""
    verified_at: float | None = await tx.value(_VERIFIED_AT, user_id=user_id)
    return verified_at


async def restore_verified_at(tx: Runner, user_id: str, verified_at: float) -> None:
    await tx.value(_RESTORE_VERIFIED_AT, user_id=user_id, verified_at=verified_at)


async def read_login(tx: Runner, user_id: str) -> str | None:
    login: str | None = await tx.value(_LOGIN, user_id=user_id)
    return login


async def set_login(tx: Runner, user_id: str, login: str, old_key: str | None) -> bool:
    """Returns False if ``old_key`` is given and is no longer the user's. Raises UniqueViolation if it is taken."""
    values = {"login": login, "login_key": login_key(login), "user_id": user_id, "old_key": old_key}
    return await tx.value(_SET_LOGIN, **values) is not None


async def cancel_deletion(tx: Runner, user_id: str) -> bool:
    """Cancels a deletion that was requested on the account page. Returns False if there is none."""
    return bool(await tx.value(_CANCEL_DELETION, user_id=user_id))


async def lock_user_for_reset(tx: Runner, login: str) -> Row | None:
    """Returns the id, login and day of deletion of a user who may reset the password, or None if there is none."""
    return await tx.row(_LOCK_FOR_RESET, login_key=login_key(login))
