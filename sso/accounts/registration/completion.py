"""The second step of a registration: a link that shows the address, a nickname and a password become a user."""

from msgspec import Struct

from sso.accounts.guest_upgrade_store import GuestLink, upgrade_guest
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.mailed_link_store import MailedLink, MailedLinks
from sso.accounts.model import User
from sso.accounts.ports import LoginWrites
from sso.accounts.registration import invitations, verification
from sso.accounts.terms.terms import Terms
from sso.accounts.user_store import create_user, is_login_used
from sso.core.net import Address
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.transaction import Transaction

# The purposes of the links that create an account, by the mode of the registration.
USABLE_LINKS = {
    "open": (verification.PURPOSE, invitations.PURPOSE),
    "invite": (invitations.PURPOSE,),
    "closed": (),
}


class LinkExpired(Struct, frozen=True):
    """The link was used, has expired or was revoked."""


class LoginTaken(Struct, frozen=True):
    """There is a user with this address by now."""


class RegistrationLink(Struct, frozen=True):
    """A link of a mail or an invitation that can be used."""

    secret: str
    purpose: str
    link: MailedLink

    @property
    def login(self) -> str:
        login: str = self.link.data["login"]
        return login

    @property
    def next_path(self) -> str:
        next_path: str = self.link.data.get("next", "")
        return next_path


class RegistrationCompletion:
    def __init__(
        self,
        database: Database,
        links: MailedLinks,
        password_login: PasswordLogin,
        mode: str,
        terms: Terms,
        writes: LoginWrites,
    ) -> None:
        """``mode`` comes from SSO_REGISTRATION. It decides about a link when it is used, not when it was sent."""
        self._database = database
        self._purposes = USABLE_LINKS[mode]
        self._links = links
        self._password_login = password_login
        self._terms = terms
        self._writes = writes

    async def find(self, secret: str) -> RegistrationLink | None:
        """Returns the link of this secret without using it, or None if it cannot be used."""
        for purpose in self._purposes:
            if link := await self._links.find(purpose, secret):
                return RegistrationLink(secret, purpose, link)
        return None

    async def is_login_taken(self, link: RegistrationLink) -> bool:
        return await is_login_used(self._database, link.login)

    async def create_user(
        self,
        link: RegistrationLink,
        nick: str,
        password: str,
        language: str,
        address: Address,
        guest: GuestLink | None = None,
    ) -> User | LinkExpired | LoginTaken:
        """Uses the link and creates the user, who has accepted the terms and whose address is verified.

        A ``guest`` becomes that user, and keeps the id, unless the guest's session has ended meanwhile.

        Raises UnacceptablePassword or LoginBusy.
        """
        password_hash = await self._password_login.hash_new_password(password, link.login, nick, address)

        async def work(tx: Transaction) -> User | LinkExpired | LoginTaken:
            if await self._links.use(tx, link.purpose, link.secret) is None:
                return LinkExpired()
            accepted, user = self._terms.accepted_version, None
            if guest is not None and not await is_login_used(tx, link.login):
                user = await upgrade_guest(tx, guest, link.login, password_hash, nick, language, accepted)
            user = user or await create_user(
                tx, link.login, password_hash, nick, language, email_verified=True, accepted_terms=accepted
            )
            if user is None:
                return LoginTaken()
            await record_event(tx, user.user_id, EventKind.REGISTERED)
            return user

        if guest is None:
            return await self._database.transaction(work)
        try:  # permissions may depend on the login and on the tag of guests
            return await self._writes.write_login(guest.guest_id, work)
        except UniqueViolation:  # a concurrent registration of the same address
            return LoginTaken()
