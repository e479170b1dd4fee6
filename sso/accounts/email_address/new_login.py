"""Sets the address of a mailed link: a new one, or the one before a change.

The address is the login, so ``login`` and ``login_key`` change together. Everything else refers to the user id.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from sso.accounts.email_address import verification
from sso.accounts.mailed_link_store import MailedLink, MailedLinks
from sso.accounts.model import User
from sso.accounts.password_reset import requests
from sso.accounts.ports import LoginWrites
from sso.accounts.user_change_store import read_login, set_login
from sso.accounts.user_store import UserStore
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.errors import UniqueViolation
from sso.db.transaction import Transaction
from sso.signals.recording import record_new_address

Result = TypeVar("Result")
CHANGE, UNDO = "email_change", "email_undo"


class AddressTaken(Exception):
    """Another account has this address by now."""


class AddressLink(Struct, frozen=True):
    """A link that sets an address: a new one, or the one before a change."""

    user: User
    link: MailedLink

    @property
    def login(self) -> str:
        return str(self.link.data["login"])


class NewLogin:
    def __init__(self, users: UserStore, links: MailedLinks, logins: LoginWrites) -> None:
        self._users = users
        self._links = links
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
        old_login = await read_login(tx, link.user_id)
        if not await set_login(tx, link.user_id, login, old_key):
            return False
        actor, entries = AuditActor(user_id=link.user_id), ({"login": old_login}, {"login": login})
        await trail.write(tx, actor, "user.save", link.user_id, *entries)  # permissions may depend on the domain
        await record_new_address(tx, link.user_id, old_login or "", login)
        for purpose in (CHANGE, requests.PURPOSE, verification.PURPOSE):
            await self._links.revoke(tx, purpose, link.user_id)
        return True

    async def write(self, user_id: str, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        """Runs a transaction that sets an address. Raises AddressTaken."""
        try:
            return await self._logins.write_login(user_id, work)
        except UniqueViolation:
            raise AddressTaken from None
