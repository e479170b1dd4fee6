"""Changes the address of an account: confirmed at the new address, and undone with a link to the old one.

The address is the login, so ``login`` and ``login_key`` change together. Everything else refers to the user id.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from sso.accounts.email_address import verification
from sso.accounts.email_address.mails import (
    CHANGE_LINK_S,
    UNDO_LINK_S,
    changed_mail,
    confirmation_mail,
    taken_mail,
    undone_mail,
)
from sso.accounts.email_address.recent_additions import BEFORE_CHANGE_S, remove_recent_additions
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.mailed_links import MailedLink, MailedLinks
from sso.accounts.model import User, login_key, mailbox_key, stored_login
from sso.accounts.own_changes import audit_new_login
from sso.accounts.password_reset import requests
from sso.accounts.ports import LoginWrites
from sso.accounts.users import UserStore, get_user, lock_user, revoke_everything
from sso.core.mail_address import check_mail_address
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.rate_limit import claim_turn, turn_wait
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.mail.outbox import Outbox

Result = TypeVar("Result")
CHANGE, UNDO = "email_change", "email_undo"
# Pauses between mails that one user requests, and between mails to one new address, which may be a stranger's.
USER_PAUSE_S, ADDRESS_PAUSE_S = 60, 600

_IS_TAKEN = Statement("SELECT EXISTS (SELECT FROM users WHERE login_key = :login_key)")
# The unique index of login_key decides whether the address is free.
_SET_LOGIN = Statement(
    """UPDATE users SET login = :login, login_key = :login_key, email_verified = true
    WHERE user_id = :user_id AND (login_key = :old_key OR CAST(:old_key AS text) IS NULL) RETURNING user_id"""
)
_LOGIN = Statement("SELECT login FROM users WHERE user_id = :user_id")
_DELETE_CODES = Statement("DELETE FROM email_codes WHERE user_id = :user_id")
_PENDING = Statement(
    """SELECT data FROM mailed_links WHERE user_id = :user_id AND purpose = :purpose AND expires > now()
    ORDER BY created DESC LIMIT 1"""
)


# An earlier link stays: it may be that of the owner, while the later addresses are those of a thief.
_REVOKE_LATER_LINKS = Statement(
    """DELETE FROM mailed_links WHERE digest IN (
        SELECT digest FROM mailed_links WHERE user_id = :user_id AND purpose = :purpose AND expires >= :expires
        ORDER BY digest FOR UPDATE
    )"""
)
# A deletion that was requested on the account page. The one who has requested it may be the thief.
_CANCEL_DELETION = Statement(
    """UPDATE users SET deletion_due = NULL, deletion_by = NULL, disabled = false
    WHERE user_id = :user_id AND deletion_by = 'user' AND deletion_due > now() RETURNING user_id"""
)


class AddressTaken(Exception):
    """Another account has this address by now."""


@dataclass(frozen=True)
class AddressLink:
    """A link that sets an address: a new one, or the one before a change."""

    user: User
    login: str


class EmailChange:
    def __init__(
        self,
        database: Database,
        users: UserStore,
        links: MailedLinks,
        outbox: Outbox,
        service_name: str,
        logins: LoginWrites,
    ) -> None:
        self._database = database
        self._users = users
        self._links = links
        self._outbox = outbox
        self._service_name = service_name
        self._logins = logins

    async def request(self, user: User, login: str, language: str) -> int:
        """Mails a link to the new address. Returns 0, or the seconds to wait if the last mail was sent too recently.

        If the address belongs to an account, its owner gets a mail that says so; the caller does not learn it. Raises
        ValueError if it is not a mail address.
        """
        login = stored_login(check_mail_address(login))
        key = login_key(login)

        async def work(tx: Transaction) -> int:
            await lock_user(tx, user.user_id)
            turns = (
                (f"address change:{user.user_id}", USER_PAUSE_S),
                (f"address mail:{mailbox_key(login)}", ADDRESS_PAUSE_S),
            )
            if wait_s := max([await turn_wait(tx, name) for name, _ in turns]):
                return wait_s
            for name, pause_s in turns:
                await claim_turn(tx, name, pause_s)
            await self._links.revoke(tx, CHANGE, user.user_id)
            url = await self._links.create(
                tx, CHANGE, "/email/change", CHANGE_LINK_S, user.user_id, login=login, old_key=user.login_key
            )
            is_taken = await tx.value(_IS_TAKEN, login_key=key)
            mail = taken_mail(self._service_name) if is_taken else confirmation_mail(url, self._service_name)
            await self._outbox.put(tx, login, mail, language)
            return 0

        wait_s = await self._database.transaction(work)
        self._outbox.wake_senders()
        return wait_s

    async def pending(self, user: User) -> str:
        """Returns the new address that has not been confirmed yet, or ""."""
        data = await self._database.value(_PENDING, user_id=user.user_id, purpose=CHANGE)
        return data["login"] if data else ""

    async def cancel(self, user: User) -> None:
        await self._database.transaction(lambda tx: self._links.revoke(tx, CHANGE, user.user_id))

    async def find(self, purpose: str, secret: str) -> AddressLink | None:
        """Returns None if the link was used, has expired or does not exist. ``purpose`` is CHANGE or UNDO."""
        link = await self._links.find(purpose, secret)
        user = await self._users.get(link.user_id) if link and link.user_id else None
        if link is None or user is None or (user.disabled and purpose == CHANGE):
            return None
        return AddressLink(user, link.data["login"])

    async def confirm(self, secret: str) -> User | None:
        """Changes the address and returns the user, or None if the link does not work. One of several calls succeeds.

        Raises AddressTaken.
        """
        if (found := await self.find(CHANGE, secret)) is None:
            return None

        async def work(tx: Transaction) -> User | None:
            await lock_user(tx, found.user.user_id)
            link = await self._links.use(tx, CHANGE, secret)
            if link is None or not await self._set_login(tx, link, link.data["old_key"]):
                return None
            await tx.value(_DELETE_CODES, user_id=link.user_id)
            undo_url = await self._links.create(
                tx, UNDO, "/email/undo", UNDO_LINK_S, link.user_id, login=found.user.login
            )
            await record_event(tx, found.user.user_id, EventKind.EMAIL_CHANGED)
            mail = changed_mail(link.data["login"], undo_url, self._service_name)
            await self._outbox.put(tx, found.user.login, mail, found.user.lang)
            return await get_user(tx, found.user.user_id)

        return await self._run(found.user.user_id, work)

    async def undo(self, secret: str) -> str | None:
        """Restores the address that the account had before, whatever has changed since, and revokes everything issued.

        Ways to sign in that were added since the day before the change are removed. An account that was closed by its
        user, or by a thief, is kept. Links to addresses of later changes end.

        Returns the secret of a link that resets the password, or None if the link does not work. Raises AddressTaken.
        """
        if (found := await self.find(UNDO, secret)) is None:
            return None

        async def work(tx: Transaction) -> str | None:
            await lock_user(tx, found.user.user_id)
            link = await self._links.use(tx, UNDO, secret)
            if link is None or not await self._set_login(tx, link, None):
                return None
            await tx.value(_REVOKE_LATER_LINKS, user_id=found.user.user_id, purpose=UNDO, expires=link.expires)
            since = link.expires - timedelta(seconds=UNDO_LINK_S + BEFORE_CHANGE_S)
            await remove_recent_additions(tx, found.user.user_id, since)
            await revoke_everything(tx, found.user.user_id)
            if await tx.value(_CANCEL_DELETION, user_id=found.user.user_id):
                await record_event(tx, found.user.user_id, EventKind.DELETION_CANCELLED)
            await record_event(tx, found.user.user_id, EventKind.EMAIL_CHANGE_UNDONE)
            await self._outbox.put(tx, found.user.login, undone_mail(self._service_name), found.user.lang)
            reset_url = await self._links.create(
                tx, requests.PURPOSE, "/reset", requests.LINK_S, found.user.user_id, next=""
            )
            return reset_url.rpartition("=")[2]

        return await self._run(found.user.user_id, work)

    async def _set_login(self, tx: Transaction, link: MailedLink, old_key: str | None) -> bool:
        """Sets the address of the link for a locked user. Links that were sent to the address before become invalid."""
        assert link.user_id is not None
        login = link.data["login"]
        old_login = await tx.value(_LOGIN, user_id=link.user_id)
        values = {"login": login, "login_key": login_key(login), "user_id": link.user_id, "old_key": old_key}
        if await tx.value(_SET_LOGIN, **values) is None:
            return False
        await audit_new_login(tx, link.user_id, old_login, login)
        for purpose in (CHANGE, requests.PURPOSE, verification.PURPOSE):
            await self._links.revoke(tx, purpose, link.user_id)
        return True

    async def _run(self, user_id: str, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        try:
            result = await self._logins.write_login(user_id, work)
        except UniqueViolation:
            raise AddressTaken from None
        self._outbox.wake_senders()
        return result
