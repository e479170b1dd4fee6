"""New accounts for identities that are not linked to a user, while registration is open.

An account is created at once if the provider is trusted for e-mail addresses and says that this one is verified.
Otherwise the usual registration verifies an address by mail, and the identity is linked after it.
"""

import structlog

from sso.accounts.guest_upgrade_store import GuestLink, upgrade_guest
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User, stored_login
from sso.accounts.ports import LoginWrites
from sso.accounts.terms.terms import Terms
from sso.accounts.user_store import create_user, is_login_used
from sso.core.mail_address import check_mail_address
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.transaction import Transaction
from sso.upstream.identity_store import PendingIdentities, PendingIdentity
from sso.upstream.linked_identities import LinkedIdentities
from sso.upstream.model import IdentityProvider

log = structlog.get_logger()


class AccountExists(Exception):
    """The address, or by now the identity, belongs to an account."""


class IdentityRegistration:
    def __init__(
        self,
        database: Database,
        links: LinkedIdentities,
        pending: PendingIdentities,
        terms: Terms,
        writes: LoginWrites,
        *,
        is_open: bool,
    ) -> None:
        self._database = database
        self._links = links
        self._pending = pending
        self._writes = writes
        self.terms = terms
        self.is_open = is_open

    def verified_address(self, provider: IdentityProvider, pending: PendingIdentity) -> str | None:
        """Returns the address with which an account can be created at once, or None."""
        identity = pending.identity
        if not (self.is_open and provider.trusted_email and identity.email_verified):
            return None
        try:
            return check_mail_address(stored_login(identity.email))
        except ValueError:
            return None

    async def create(
        self,
        provider: IdentityProvider,
        browser_secret: str,
        pending: PendingIdentity,
        nick: str,
        language: str,
        guest: GuestLink | None = None,
    ) -> User | None:
        """Creates a user without a password who signs in with the identity that waits in this browser.

        A ``guest`` becomes that user, and keeps the id, unless the guest's session has ended meanwhile.
        Returns None if the identity no longer waits, or its address is not verified. Raises AccountExists.
        """
        login = self.verified_address(provider, pending)
        if login is None:
            return None

        async def work(tx: Transaction) -> User | None:
            if not await self._pending.use(browser_secret, pending, tx):
                return None
            accepted, user = self.terms.accepted_version, None
            if guest is not None and not await is_login_used(tx, login):
                user = await upgrade_guest(tx, guest, login, None, nick, language, accepted)
            user = user or await create_user(
                tx, login, None, nick, language, email_verified=True, accepted_terms=accepted
            )
            if user is None:
                raise AccountExists
            await self._links.insert(tx, user.user_id, provider, pending.identity)
            await record_event(tx, user.user_id, EventKind.REGISTERED)
            await record_event(tx, user.user_id, EventKind.IDENTITY_LINKED, name=provider.name)
            return user

        try:
            if guest is None:
                created = await self._database.transaction(work)
            else:  # permissions may depend on the login and on the tag of guests
                created = await self._writes.write_login(guest.guest_id, work)
        except UniqueViolation:
            raise AccountExists from None
        if created:
            log.info("upstream.account_created", provider=provider.provider_id, user=created.user_id)
        return created
