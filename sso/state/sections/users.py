"""Users."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from sso.accounts.disabling import set_disabled
from sso.accounts.model import User, login_key, stored_login
from sso.accounts.second_factor.codes import totp_purpose
from sso.accounts.users import (
    ADDRESS_LINKS,
    exportable_fields,
    get_user,
    revoke_everything,
    revoke_links,
    unused_user_id,
)
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.mail_address import check_mail_address
from sso.db.row_statements import insert_statement, update_statement
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.state.location import DocumentError
from sso.state.summary import CHANGED, CREATED, UNCHANGED
from sso.state.values import AccountPart, Tag, Text, check_user_id, matching

BASE32 = re.compile(r"[A-Z2-7]{16,128}", re.ASCII)
_ALL = Statement("SELECT * FROM users ORDER BY reg_time, user_id")
_IS_ERASED = Statement("SELECT EXISTS (SELECT FROM erased_users WHERE user_id = :user_id)")
_LOCK_USER = Statement("SELECT * FROM users WHERE user_id = :user_id OR login_key = :login_key FOR UPDATE")


Login = Annotated[str, AfterValidator(stored_login), AfterValidator(check_mail_address)]


class UserChanges(AccountPart):
    """The fields of a user, each of which may be missing."""

    user_id: Annotated[str, AfterValidator(check_user_id)] | None = None
    login: Login | None = None
    password: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    nick: Text | None = None
    country: Text | None = None
    lang: Text | None = None
    level: Text | None = None
    tags: list[Tag] | None = None
    purchases: list[Tag] | None = None
    email_verified: bool | None = None
    phone: Text | None = None
    phone_verified: bool | None = None
    totp_secret: Annotated[str, matching(BASE32, "base32 of at least 16 characters")] | None = None
    email_2fa: bool | None = None
    meta: dict[str, Any] | None = None
    disabled: bool | None = None


class UserPart(UserChanges):
    login: Login


async def apply(
    tx: Transaction, actor: AuditActor, keyring: Keyring, location: str, part: UserPart, password_hash: str | None
) -> str:
    """Creates or changes the user. Returns which of both it did, or that nothing changed.

    ``password_hash`` is that of a new password, None to keep the stored one.
    """
    rows = await tx.rows(_LOCK_USER, user_id=part.user_id or "", login_key=login_key(part.login))
    if len(rows) > 1 or (rows and part.user_id and rows[0]["user_id"] != part.user_id):
        raise DocumentError(f"{location}.login: belongs to another user_id")
    old = User.from_row(rows[0]) if rows else None
    if old is not None and old.deletion_by == "erasing":
        raise DocumentError(f"{location}.user_id: belongs to a user who is being erased")
    user_id = old.user_id if old else part.user_id or await unused_user_id(tx)
    if old is None and await tx.value(_IS_ERASED, user_id=user_id):
        raise DocumentError(f"{location}.user_id: belonged to a user who was erased; choose another one")
    values = _values(part, old, user_id, keyring, password_hash)
    if old is None:
        await tx.value(insert_statement("users", ("user_id", *values)), user_id=user_id, **values)
        await trail.write(tx, actor, "user.create", user_id, None, _for_audit(values))
        return CREATED
    changed = {name: value for name, value in values.items() if getattr(old, name) != _comparable(value)}
    before = {name: getattr(old, name) for name in changed}
    if changed:
        await tx.value(update_statement("users", "user_id", changed), user_id=user_id, **changed)
    if part.disabled is not None and (state := await set_disabled(tx, user_id, disabled=part.disabled)):
        new = await get_user(tx, user_id)
        before, changed = before | state, changed | {name: getattr(new, name) for name in state}
    if not changed:
        return UNCHANGED
    await trail.write(tx, actor, "user.save", user_id, _for_audit(before), _for_audit(changed))
    if not changed.keys().isdisjoint(("password_hash", "totp_sealed", "email_2fa")):
        await revoke_everything(tx, user_id)
    if "login_key" in changed:
        await revoke_links(tx, user_id, ADDRESS_LINKS)
    return CHANGED


def _values(
    part: UserPart, old: User | None, user_id: str, keyring: Keyring, password_hash: str | None
) -> dict[str, Any]:
    """Returns the columns that the document sets."""
    values = part.model_dump(exclude_none=True, exclude={"user_id", "password", "totp_secret"})
    values["login_key"] = login_key(part.login)
    if old is not None:
        values.pop("disabled", None)  # has an operation of its own
    if old is not None and old.login_key != values["login_key"]:
        values.setdefault("email_verified", False)  # the new address is not verified yet
    if password_hash is not None:
        values["password_hash"] = password_hash
    if part.totp_secret is not None:
        purpose = totp_purpose(user_id)
        if old is None or old.totp_sealed is None or keyring.decrypt(purpose, old.totp_sealed) != part.totp_secret:
            values["totp_sealed"] = keyring.encrypt(purpose, part.totp_secret)
    return values


def _for_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns under their names in the audit trail, which blanks the secrets."""
    names = {"password_hash": "password", "totp_sealed": "totp_secret", "login_key": None}
    renamed = {names.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in renamed.items() if name is not None}


def _comparable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


async def export(tx: Transaction) -> list[dict[str, Any]]:
    return [exported(User.from_row(row)) for row in await tx.rows(_ALL)]


def exported(user: User) -> dict[str, Any]:
    """An account that its user has closed stays as it is: to disable it would take from them that they may keep it."""
    return exportable_fields(user) | ({"disabled": True} if user.disabled and not user.can_be_kept else {})
