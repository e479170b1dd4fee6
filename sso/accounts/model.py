"""A user, and what a login may ask for."""

import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sso.core.domains import domain_key
from sso.core.mail_address import MAX_ADDRESS_LENGTH
from sso.core.net import Address

NO_LOGIN = ""


@dataclass(frozen=True)
class User:
    user_id: str
    login: str
    login_key: str
    password_hash: str | None = field(repr=False)
    nick: str
    country: str
    lang: str
    level: str
    tags: tuple[str, ...]
    purchases: tuple[str, ...]
    email_verified: bool
    phone: str
    phone_verified: bool
    totp_sealed: str | None = field(repr=False)
    totp_last_step: int
    email_2fa: bool
    meta: dict[str, Any]
    reg_time: datetime
    disabled: bool
    valid_from: int

    @property
    def second_factors(self) -> tuple[str, ...]:
        """The second factors that are on."""
        return (("totp",) if self.totp_sealed else ()) + (("email",) if self.email_2fa else ())

    @classmethod
    def from_row(cls, row: Any) -> "User":
        values = {name: row[name] for name in cls.__dataclass_fields__}
        return cls(**{**values, "tags": tuple(values["tags"]), "purchases": tuple(values["purchases"])})


def login_key(login: str) -> str:
    """The form by which logins are compared, and unique: without regard to case, the domain as an IDN.

    A text that is too long for a login gets a key that no user has: the time that a normalisation takes can grow with
    the square of the length.
    """
    if len(login) > MAX_ADDRESS_LENGTH:
        return NO_LOGIN
    local, at, domain = stored_login(login).rpartition("@")
    return f"{unicodedata.normalize('NFC', local.casefold())}{at}{domain_key(domain) if at else domain.casefold()}"


def stored_login(login: str) -> str:
    """The form in which logins are stored: NFC, so that two that look the same are the same."""
    return unicodedata.normalize("NFC", login)


@dataclass(frozen=True)
class LoginOptions:
    """What the answer of a login shall be like; the same for the login operation and for game sessions."""

    address: Address  # of the client that started it
    factor: str = ""
    jwt_public_key: str = ""
    distr: str = ""
    nojwt: bool = False
    short_token: bool = False
    fixed_ips: tuple[str, ...] = ()  # CIDR; with fixed_ip, the address above is among them
    meta: bool = False
    meta_given: bool = False  # it was asked for or declined, rather than left out
    app_id: int = 0  # 0: none
    gapp_id: int = 0
    with_email: bool = False  # the application has shown its secret

    @property
    def application_ids(self) -> tuple[int, ...]:
        return application_ids(self.app_id, self.gapp_id)


def application_ids(app_id: int, gapp_id: int) -> tuple[int, ...]:
    """Where the user must be allowed to log in, and whose permissions are in the answer."""
    if not (app_id or gapp_id):
        return ()
    return tuple(dict.fromkeys(number for number in (app_id, gapp_id) if number))


@dataclass(frozen=True)
class SignedIn:
    """Somebody has proved who they are; ``auth`` says how, in the words of the user JWT."""

    user: User
    auth: str


@dataclass(frozen=True)
class SecondFactorRequired:
    """The password was right; one of ``user.ways`` is still owed."""

    user: User
