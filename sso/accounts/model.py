"""Users and the options and outcomes of a login."""

import unicodedata
from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.accounts.authentication_context import AuthenticationContext
from sso.core.ban import Ban, read_bans
from sso.core.domains import domain_key
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.mail_address import MAX_ADDRESS_LENGTH, check_mail_address
from sso.core.net import Address
from sso.core.test_players import is_test_player

NO_LOGIN = ""  # a key that no user has
GUEST_TAG = "guest"


class User(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"password_hash", "totp_sealed", "passkey_handle"})

    user_id: str
    login: str
    login_key: str
    password_hash: str | None
    nick: str
    country: str
    lang: str
    level: str
    tags: tuple[str, ...]
    purchases: tuple[str, ...]
    email_verified: bool
    phone: str
    phone_verified: bool
    totp_sealed: str | None
    totp_last_step: int
    email_2fa: bool
    passkey_count: int
    passkey_handle: bytes | None
    meta: dict[str, Any]
    reg_time: datetime
    disabled: bool
    valid_from: int
    sign_in_notices: bool  # mails about sign-ins with new devices
    first_sign_in: datetime | None  # NULL also if it was before this was recorded
    terms_version: str  # the version of the terms that the user has accepted
    terms_accepted: datetime | None
    deletion_due: datetime | None  # when the account, which is disabled until then, will be erased
    deletion_by: str | None  # "user", "operator" or "disabled"
    updated: datetime | None
    bans: tuple[Ban, ...]
    merged_into: str | None = None  # the user whom this one was merged into; it is disabled since then

    @property
    def second_factors(self) -> tuple[str, ...]:
        """The second factors that are turned on: "totp", "email", "passkey"."""
        factors = {"totp": self.totp_sealed is not None, "email": self.email_2fa, "passkey": self.passkey_count > 0}
        return tuple(factor for factor, is_on in factors.items() if is_on)

    @property
    def is_guest(self) -> bool:
        """Whether the user is a guest: a player who has no login, but the key of a device or a store account."""
        return not self.login

    @property
    def is_test_player(self) -> bool:
        return is_test_player(self.user_id, self.login)

    @property
    def is_closed(self) -> bool:
        """Whether the account will be deleted, and its user is told so after the sign-in.

        The user of an account that is also disabled is told as little as other disabled users.
        """
        return self.deletion_by in ("user", "operator")

    @property
    def can_be_kept(self) -> bool:
        """Whether the user has requested the deletion of the account and may cancel it."""
        return self.deletion_by == "user"

    @classmethod
    def from_row(cls, row: Any) -> "User":
        values = {name: row[name] for name in cls.__struct_fields__}
        tuples = {"tags": tuple(values["tags"]), "purchases": tuple(values["purchases"])}
        return cls(**{**values, **tuples, "bans": read_bans(values["bans"])})


def login_key(login: str) -> str:
    """Returns the unique form of a login by which it is looked up: case-folded, with the domain in its IDN form.

    Returns NO_LOGIN for a text that is too long, because the time to normalize it can grow with the square of its
    length.
    """
    if len(login) > MAX_ADDRESS_LENGTH:
        return NO_LOGIN
    local, at, domain = stored_login(login).rpartition("@")
    return f"{unicodedata.normalize('NFC', local.casefold())}{at}{domain_key(domain) if at else domain.casefold()}"


def mailbox_key(login: str) -> str:
    """Returns the subject of a recipient's limit of mails: those to ``ann+1@`` and ``ann+2@`` arrive in one mailbox."""
    local, at, domain = login_key(login).rpartition("@")
    return f"{local.partition('+')[0]}{at}{domain}"


def stored_login(login: str) -> str:
    """Returns the form in which logins are stored: NFC, so that texts that look the same are equal."""
    return unicodedata.normalize("NFC", login)


def typed_login(text: str) -> str | None:
    """Returns the address that a person has typed, in the form in which logins are stored; None if it is no address."""
    if len(text) > MAX_ADDRESS_LENGTH:
        return None
    try:
        return check_mail_address(stored_login(text.strip()))
    except ValueError:
        return None


class LoginOptions(Struct, frozen=True):
    """The options of a login, for the login operation and for game sessions: what it returns, and for which client."""

    address: Address  # where the client that started the login is
    factor: str = ""
    jwt_public_key: str = ""
    distr: str = ""
    nojwt: bool = False
    short_token: bool = False
    fixed_ips: tuple[str, ...] = ()  # networks in CIDR form; with fixed_ip, one of them is the address above
    meta: bool = False
    meta_given: bool = False  # the request contained the field
    app_id: int = 0  # 0: none
    gapp_id: int = 0
    with_email: bool = False  # requested with the application's secret

    @property
    def application_ids(self) -> tuple[int, ...]:
        return application_ids(self.app_id, self.gapp_id)


def application_ids(app_id: int, gapp_id: int) -> tuple[int, ...]:
    """Returns the applications that the user must be allowed to log in to, and whose permissions are returned."""
    if not (app_id or gapp_id):
        return ()
    return tuple(dict.fromkeys(number for number in (app_id, gapp_id) if number))


class SessionEntry(Struct, frozen=True):
    """A session in the list of the account page."""

    id: str
    created: datetime
    last_seen: datetime
    address: str
    device: str


class SignedIn(Struct, frozen=True):
    """A user has authenticated."""

    user: User
    authentication: AuthenticationContext

    @property
    def auth(self) -> str:
        """The method, as in the claim of the user JWT."""
        return self.authentication.auth


class SecondFactorRequired(Struct, frozen=True):
    """The password was correct; a code of one of ``user.second_factors`` is missing."""

    user: User
