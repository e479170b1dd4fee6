"""Changing a password: everything that was issued to the user is revoked, and the user gets a notice by mail."""

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.user_change_store import set_password
from sso.accounts.user_store import get_user, revoke_everything
from sso.core.brand import CurrentBrand
from sso.core.language import Text
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

BY_USER = Text("The password of your account was changed on your account page.")
BY_OPERATOR = Text("Support has set a new password for your account.")
BY_RESET = Text("The password of your account was changed with a link that we sent to this address.")
SUBJECT = "Your password for %(service)s was changed"
ADVICE = Text(
    "You have been signed out of your games, sites and other browsers. If this was not you, choose a new password on "
    "the sign-in page with “Forgot your password?” and ask support for help."
)


class PasswordChanges:
    def __init__(self, database: Database, outbox: Outbox, brand: CurrentBrand) -> None:
        self._database = database
        self._outbox = outbox
        self._brand = brand

    async def change(self, user: User, password_hash: str) -> User | None:
        """Changes the password and returns the changed user.

        If ``valid_from`` of the user has changed since it was read, nothing is changed and None is returned: a delayed
        change must not undo the one that revoked its session.
        """
        return await self._database.transaction(self.apply, user, password_hash, BY_USER, user.valid_from)

    async def apply(
        self, tx: Transaction, user: User, password_hash: str, reason: Text, valid_from: int | None
    ) -> User | None:
        """Changes the password in a transaction of the caller."""
        if not await set_password(tx, user.user_id, password_hash, valid_from):
            return None
        await revoke_everything(tx, user.user_id)
        await record_event(
            tx, user.user_id, EventKind.PASSWORD_RESET if reason is BY_RESET else EventKind.PASSWORD_CHANGED
        )
        content = MailContent(Text(SUBJECT, service=self._brand.name), (reason, ADVICE))
        await self._outbox.put(tx, user.login, content, user.lang)
        return await get_user(tx, user.user_id)
