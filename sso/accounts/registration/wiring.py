"""Builds the services of the registration."""

from msgspec import Struct

from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.mailed_link_store import MailedLinks
from sso.accounts.ports import LoginWrites
from sso.accounts.registration.completion import RegistrationCompletion
from sso.accounts.registration.invitations import Invitations
from sso.accounts.registration.verification import AddressVerification
from sso.accounts.terms.terms import Terms
from sso.config import Settings
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.mail.outbox import Outbox


class UserRegistration(Struct, frozen=True):
    mode: str  # closed, open, invite
    verification: AddressVerification
    completion: RegistrationCompletion
    invitations: Invitations
    rate: RateLimiter
    terms: Terms


def build_registration(
    settings: Settings,
    database: Database,
    keyring: Keyring,
    links: MailedLinks,
    outbox: Outbox,
    password_login: PasswordLogin,
    brand: CurrentBrand,
    terms: Terms,
    writes: LoginWrites,
) -> UserRegistration:
    return UserRegistration(
        mode=settings.registration,
        verification=AddressVerification(database, keyring, links, outbox, brand, settings.base_url),
        completion=RegistrationCompletion(database, links, password_login, settings.registration, terms, writes),
        invitations=Invitations(database, links, outbox, brand),
        rate=RateLimiter(database, "registration", settings.rate_register),
        terms=terms,
    )
