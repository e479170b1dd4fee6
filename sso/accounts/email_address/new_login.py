"""Sets the address of a mailed link: a new one, or the one before a change.

The address is the login, so ``login`` and ``login_key`` change together. Everything else refers to the user id.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from sso.accounts.email_address import verification
from sso.accounts.mailed_links import MailedLink, MailedLinks
from sso.accounts.model import User, login_key
from sso.accounts.password_reset import requests
from sso.accounts.ports import LoginWrites
from sso.accounts.user_store import UserStore
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.mail.outbox import Outbox

Result = TypeVar("Result")
CHANGE, UNDO = "email_change", "email_undo"

# The unique index of login_key decides whether the address is free.
_SET_LOGIN = Statement(
    """UPDATE users SET login = :login, login_key = :login_key, email_verified = true
    WHERE user_id = :user_id AND (login_key = :old_key OR CAST(:old_key AS text) IS NULL) RETURNING user_id"""
)
_LOGIN = Statement("SELECT login FROM users WHERE user_id = :user_id")


class AddressTaken(Exception):
    """Another account has this address by now."""


@dataclass(frozen=True)
class AddressLink:
    """A link that sets an address: a new one, or the one before a change."""

    user: User
    link: MailedLink

    @property
    def login(self) -> str:
        return str(self.link.data["login"])


class NewLogin:
    def __init__(self, users: UserStore, links: MailedLinks, outbox: Outbox, logins: LoginWrites) -> None:
        self._users = users
        self._links = links
        self._outbox = outbox
        self._logins = logins

    async def find(self, purpose: str, secret: str) -> AddressLink | None:
        """Returns None if the link was used, has expired or does not exist. ``purpose`` is CHANGE or UNDO."""
        link = await self._links.find(purpose, secret)
        user = await self._users.get(link.user_id) if link and link.user_id else None
        if link is None or user is None or (user.disabled and purpose == CHANGE):
            return None
        return AddressLink(user, link)

    async def set(self, tx: Transaction, link: MailedLink, old_key: str | None) -> bool:
        """Sets the address of the link for a locked user. Links that were sent to the address before become invalid.

        Returns False if ``old_key`` is given and is no longer the user's.
        """
        assert link.user_id is not None
        login = link.data["login"]
        old_login = await tx.value(_LOGIN, user_id=link.user_id)
        values = {"login": login, "login_key": login_key(login), "user_id": link.user_id, "old_key": old_key}
        if await tx.value(_SET_LOGIN, **values) is None:
            return False
        actor, entries = AuditActor(user_id=link.user_id), ({"login": old_login}, {"login": login})
        await trail.write(tx, actor, "user.save", link.user_id, *entries)  # permissions may depend on the domain
        for purpose in (CHANGE, requests.PURPOSE, verification.PURPOSE):
            await self._links.revoke(tx, purpose, link.user_id)
        return True

    async def write(self, user_id: str, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        """Runs a transaction that sets an address, and sends its mails. Raises AddressTaken."""
        try:
            result = await self._logins.write_login(user_id, work)
        except UniqueViolation:
            raise AddressTaken from None
        self._outbox.wake_senders()
        return result
