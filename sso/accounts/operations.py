"""The operations with which administrators save users, for the management API and for documents: audit entries, what a
change revokes, change events and notices. They run in a transaction of the caller.
"""

from typing import Any

from msgspec import Struct

from sso.accounts.disabling import set_disabled
from sso.accounts.model import GUEST_TAG, User, login_key
from sso.accounts.password_changes import BY_OPERATOR, PasswordChanges
from sso.accounts.second_factor.codes import totp_purpose
from sso.accounts.second_factor.store import delete_mailed_code
from sso.accounts.user_record import UserChanges, UserRecord
from sso.accounts.user_store import (
    ADDRESS_LINKS,
    get_user,
    insert_user,
    lock_users,
    revoke_everything,
    revoke_links,
    unused_user_id,
    update_user,
    was_erased,
)
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError
from sso.core.records import Outcome
from sso.core.test_players import TEST_PLAYERS, is_test_player
from sso.db.transaction import Transaction
from sso.signals.recording import record_new_address, record_new_totp_secret

# Who knows one of these could still sign in, so their change ends everything that was issued before.
_CREDENTIALS = frozenset(("password_hash", "totp_sealed", "email_2fa"))
_COLUMNS = UserChanges.model_fields.keys() - {"user_id", "password", "totp_secret"}
# A guest becomes an account when the player registers, and in no other way.
_NOT_OF_GUESTS = ("login", "password", "totp_secret", "email_2fa", "email_verified")
_AUDIT_NAMES = {"password_hash": "password", "totp_sealed": "totp_secret", "login_key": None}


class UserOperations(Struct, frozen=True):
    """``password_hash`` comes from a new password; None keeps the stored one."""

    keyring: Keyring
    passwords: PasswordChanges

    async def save(self, tx: Transaction, actor: AuditActor, record: UserRecord, password_hash: str | None) -> Outcome:
        """Creates the user, or changes the one who has the id or the login. A closed account is disabled already."""
        user = await self.create_missing(tx, actor, record, password_hash)
        if not isinstance(user, User):
            return Outcome.CREATED
        if record.disabled and user.disabled:  # an export says so, and the user may keep a closed account
            record = record.model_copy(update={"disabled": None})
        changed = await self._change(tx, actor, user, record, password_hash)
        return Outcome.CHANGED if changed else Outcome.UNCHANGED

    async def create_missing(
        self, tx: Transaction, actor: AuditActor, record: UserRecord, password_hash: str | None
    ) -> str | User:
        """Creates the user and returns the id. Returns the user who has the id or the login if there is one, locked.

        Raises FieldError before anything is changed.
        """
        users = await lock_users(tx, record.user_id, record.login)
        if len(users) > 1 or (users and record.user_id not in (None, users[0].user_id)):
            raise FieldError(("login",), "belongs to another user_id")
        return users[0] if users else await self._create(tx, actor, record, password_hash)

    async def create(self, tx: Transaction, actor: AuditActor, record: UserRecord, password_hash: str | None) -> User:
        users = await lock_users(tx, record.user_id, record.login)
        if any(user.login_key == login_key(record.login) for user in users):
            raise login_taken()
        if users:
            raise FieldError(("user_id",), "is used by another user", status=409)
        return await get_user(tx, await self._create(tx, actor, record, password_hash))

    async def change(
        self, tx: Transaction, actor: AuditActor, user: User, changes: UserChanges, password_hash: str | None
    ) -> User:
        """Changes a user whom the caller has locked."""
        owners = [] if changes.login is None else await lock_users(tx, None, changes.login)
        if any(owner.user_id != user.user_id for owner in owners):
            raise login_taken()
        await self._change(tx, actor, user, changes, password_hash)
        return await get_user(tx, user.user_id)

    async def _create(self, tx: Transaction, actor: AuditActor, record: UserRecord, password_hash: str | None) -> str:
        user_id = record.user_id or await unused_user_id(tx)
        if record.user_id and await was_erased(tx, user_id):
            raise FieldError(("user_id",), "belonged to a user who was erased; choose another one")
        _check_guest_fields(record, None)
        if user_id in TEST_PLAYERS and not is_test_player(user_id, record.login):
            raise FieldError(("user_id",), f"is reserved for the test player {TEST_PLAYERS[user_id]}")
        values = self._values(record, None, user_id)
        if password_hash is not None:
            values["password_hash"] = password_hash
        await insert_user(tx, user_id, values)
        await trail.write(tx, actor, "user.create", user_id, None, _for_audit(values))
        return user_id

    async def _change(
        self, tx: Transaction, actor: AuditActor, user: User, changes: UserChanges, password_hash: str | None
    ) -> bool:
        if user.deletion_by == "erasing":
            raise FieldError(("user_id",), "belongs to a user who is being erased")
        _check_guest_fields(changes, user)
        _check_test_player(changes, user)
        if changes.disabled is False and user.merged_into is not None:  # it would act with the rights of the other one
            raise FieldError(("disabled",), f"the user was merged into {user.merged_into}: undo the merge instead")
        user_id = user.user_id
        values = self._values(changes, user, user_id)
        changed = {name: value for name, value in values.items() if getattr(user, name) != _comparable(value)}
        before = {name: getattr(user, name) for name in changed}
        if changed:
            await update_user(tx, user_id, changed)
        if password_hash is not None:
            await self.passwords.apply(tx, user, password_hash, BY_OPERATOR, None)
            before, changed = before | {"password_hash": user.password_hash}, changed | {"password_hash": password_hash}
        if changes.disabled is not None and (state := await set_disabled(tx, user_id, disabled=changes.disabled)):
            new = await get_user(tx, user_id)
            before, changed = before | state, changed | {name: getattr(new, name) for name in state}
        if not changed:
            return False
        await trail.write(tx, actor, "user.save", user_id, _for_audit(before), _for_audit(changed))
        if password_hash is None and not changed.keys().isdisjoint(_CREDENTIALS):
            await revoke_everything(tx, user_id)
        if "login_key" in changed:
            await revoke_links(tx, user_id, ADDRESS_LINKS)
            await delete_mailed_code(tx, user_id)
            await record_new_address(tx, user_id, user.login, changed["login"])
        if "totp_sealed" in changed:
            await record_new_totp_secret(tx, user_id)
        return True

    def _values(self, changes: UserChanges, user: User | None, user_id: str) -> dict[str, Any]:
        """Returns the columns that the changes set, without the password."""
        values = changes.model_dump(exclude_none=True, include=_COLUMNS)
        if changes.login is not None:
            values["login_key"] = login_key(changes.login)
        if user is not None:
            values.pop("disabled", None)  # has an operation of its own
            if values.get("login_key", user.login_key) != user.login_key:
                values.setdefault("email_verified", False)  # the new address is not verified yet
        if changes.totp_secret is not None and not self._has_totp_secret(user, changes.totp_secret):
            values["totp_sealed"] = self.keyring.encrypt(totp_purpose(user_id), changes.totp_secret)
        return values

    def _has_totp_secret(self, user: User | None, secret: str) -> bool:
        if user is None or user.totp_sealed is None:
            return False
        return self.keyring.decrypt(totp_purpose(user.user_id), user.totp_sealed) == secret


def _check_guest_fields(changes: UserChanges, user: User | None) -> None:
    """Raises FieldError if the changes give a guest what only accounts have, or the tag of guests to someone else."""
    is_guest = user is not None and user.is_guest
    for name in _NOT_OF_GUESTS if is_guest else ():
        if getattr(changes, name):
            raise FieldError((name,), "a guest has none; the player makes the guest an account by registering")
    if changes.tags is None:
        return
    if is_guest and GUEST_TAG not in changes.tags:
        raise FieldError(("tags",), f"must contain {GUEST_TAG}, because the user is a guest")
    had_tag = user is not None and GUEST_TAG in user.tags
    if not is_guest and GUEST_TAG in changes.tags and not had_tag:
        raise FieldError(("tags",), f"{GUEST_TAG} is the tag of guests and cannot be given to other users")


def _check_test_player(changes: UserChanges, user: User) -> None:
    """Raises FieldError if the changes make a test player an ordinary account, or an ordinary account a test player."""
    if changes.login is not None and is_test_player(user.user_id, changes.login) != user.is_test_player:
        expected = "of a test player cannot be changed" if user.is_test_player else "is that of a test player"
        raise FieldError(("login",), expected)


def login_taken() -> FieldError:
    return FieldError(("login",), "is used by another user", status=409)


def _for_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns under their names in the audit trail, which blanks the secrets."""
    renamed = {_AUDIT_NAMES.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in renamed.items() if name is not None}


def _comparable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
