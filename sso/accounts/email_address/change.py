"""Changes the address of an account: confirmed at the new address, and undone with a link to the old one."""

from sso.accounts.email_address.mails import (
    CHANGE_LINK_S,
    UNDO_LINK_S,
    changed_mail,
    confirmation_mail,
    taken_mail,
)
from sso.accounts.email_address.new_login import CHANGE, UNDO, AddressLink, NewLogin
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.mailed_link_store import MailedLinks, newest_link_data
from sso.accounts.model import User, mailbox_key, stored_login
from sso.accounts.second_factor.store import delete_mailed_code
from sso.accounts.user_change_store import read_verified_at
from sso.accounts.user_store import get_user, is_login_used, lock_unchanged_user, lock_user
from sso.core.brand import CurrentBrand
from sso.core.errors import Forbidden
from sso.core.mail_address import check_mail_address
from sso.db.database import Database
from sso.db.rate_limit import claim_turn, turn_wait
from sso.db.transaction import Transaction
from sso.mail.outbox import Outbox

# Pauses between mails that one user requests, and between mails to one new address, which may be a stranger's.
USER_PAUSE_S, ADDRESS_PAUSE_S = 60, 600


class EmailChange:
    def __init__(
        self, database: Database, links: MailedLinks, outbox: Outbox, brand: CurrentBrand, new_login: NewLogin
    ) -> None:
        self._database = database
        self._links = links
        self._outbox = outbox
        self._brand = brand
        self._new_login = new_login

    async def request(self, user: User, login: str, language: str) -> int | None:
        """Mails a link to the new address. Returns 0, or the seconds to wait if the last mail was sent too recently.

        Returns None if the user was disabled or revoked since it was read. If the address belongs to an account, its
        owner gets a mail that says so; the caller does not learn it. Raises ValueError if it is not a mail address, and
        Forbidden for a test player.
        """
        if user.is_test_player:
            raise Forbidden("the address of a test player cannot be changed")
        login = stored_login(check_mail_address(login))

        async def work(tx: Transaction) -> int | None:
            if not await lock_unchanged_user(tx, user):
                return None
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
            is_taken = await is_login_used(tx, login)
            mail = taken_mail(self._brand.name) if is_taken else confirmation_mail(url, self._brand.name)
            await self._outbox.put(tx, login, mail, language)
            return 0

        return await self._database.transaction(work)

    async def pending(self, user: User) -> str:
        """Returns the new address that has not been confirmed yet, or ""."""
        data = await newest_link_data(self._database, CHANGE, user.user_id)
        return data["login"] if data else ""

    async def cancel(self, user: User) -> None:
        await self._database.transaction(lambda tx: self._links.revoke(tx, CHANGE, user.user_id))

    async def find(self, secret: str) -> AddressLink | None:
        """Returns None if the link was used, has expired or does not exist."""
        return await self._new_login.find(CHANGE, secret)

    async def confirm(self, secret: str) -> User | None:
        """Changes the address and returns the user, or None if the link does not work. One of several calls succeeds.

        Raises AddressTaken.
        """
        if (found := await self.find(secret)) is None:
            return None
        user = found.user

        async def work(tx: Transaction) -> User | None:
            await lock_user(tx, user.user_id)
            link = await self._links.use(tx, CHANGE, secret)
            verified_at = await read_verified_at(tx, user.user_id)
            if link is None or not await self._new_login.set(tx, link, link.data["old_key"]):
                return None
            await delete_mailed_code(tx, user.user_id)
            undo_url = await self._links.create(
                tx, UNDO, "/email/undo", UNDO_LINK_S, user.user_id, login=user.login, verified_at=verified_at
            )
            await record_event(tx, user.user_id, EventKind.EMAIL_CHANGED)
            mail = changed_mail(link.data["login"], undo_url, self._brand.name)
            await self._outbox.put(tx, user.login, mail, user.lang)
            return await get_user(tx, user.user_id)

        return await self._new_login.write(user.user_id, work)
