"""Setting a new password with a link from a mail."""

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.email_address.recent_addition_store import remove_earlier_links
from sso.accounts.email_address.verification import mark_verified
from sso.accounts.mailed_link_store import MailedLinks
from sso.accounts.model import User
from sso.accounts.password_changes import BY_RESET, PasswordChanges
from sso.accounts.password_reset.requests import PURPOSE
from sso.accounts.user_store import UserStore, lock_user
from sso.db.database import Database
from sso.db.transaction import Transaction


class PendingReset(Struct, frozen=True):
    user: User
    next_path: str

    @property
    def factor_owner(self) -> User:
        """The user with the second factors that a reset asks for.

        A code by mail would prove once more what the link has proved: that the person reads the mails to this address.
        """
        return replace(self.user, email_2fa=False)


class PasswordReset:
    def __init__(self, database: Database, users: UserStore, links: MailedLinks, changes: PasswordChanges) -> None:
        self._database = database
        self._users = users
        self._links = links
        self._changes = changes

    async def find(self, secret: str) -> PendingReset | None:
        """Returns None if the link was used, has expired or does not exist, or if its user is disabled.

        A user who has requested the deletion of the account may still choose a password, and then keep the account.
        """
        link = await self._links.find(PURPOSE, secret) if secret else None
        user = await self._users.get(link.user_id) if link and link.user_id else None
        if link is None or user is None or (user.disabled and not user.can_be_kept):
            return None
        return PendingReset(user, link.data.get("next", ""))

    async def complete(self, secret: str, reset: PendingReset, password_hash: str) -> User | None:
        """Sets the password and returns the changed user. Of several concurrent calls, one succeeds.

        All links of the user become invalid, and everything issued to the user is revoked. Identities and keys
        that were added before the address was verified are removed. Returns None, and changes nothing, if the link or
        the user has changed since it was found.
        """

        async def work(tx: Transaction) -> User | None:
            await lock_user(tx, reset.user.user_id)
            if await self._links.use(tx, PURPOSE, secret) is None:
                return None
            await mark_verified(tx, reset.user)  # the link was sent to this address
            user = await self._changes.apply(tx, reset.user, password_hash, BY_RESET, reset.user.valid_from)
            if user is not None:
                await remove_earlier_links(tx, user.user_id)
            return user

        return await self._database.transaction(work)
