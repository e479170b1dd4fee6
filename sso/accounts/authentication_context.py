"""Decides what counts as a sign-in: with which proofs, when, and which ``amr`` and ``acr`` it claims.

Every browser session and every sign-in of a program starts with an `AuthenticationContext`, which only this module
makes. A sign-in is fresh only if the request contained a proof of who the user is. A change of the account continues
the sign-in that the browser has, with its time and its methods. A link in a mail shows only that a person reads the
mails of an address: it signs in, but proves no method and gives no time of authentication.

The words for it:

=================  ====================================================================================================
``is_fresh``       of a context: the request that makes it contains the proof
``proved``         of a context that is not fresh: when the user last proved who they are, None if nothing is known
``authenticated``  of a browser session: the same time, as it is stored
``is_proven``      of a browser session: it has such a time, so that its ``auth_time`` is claimed
``is_recent``      of a browser session: that time is in the last ten minutes, so that important changes are allowed
=================  ====================================================================================================
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

# The values of ``auth`` of a browser session. The data of a login by API has only ``login`` and ``otp``, as the
# specification shows, ``guest``, ``ticket`` for tickets of stores, and ``token`` and ``gsid`` for derived sign-ins.
PASSWORD = "login"  # noqa: S105 - a method
PASSWORD_AND_CODE = "otp"  # noqa: S105 - a code of an app, of a mail, or a recovery code
PASSWORD_AND_PASSKEY = "login+passkey"  # noqa: S105
PASSKEY = "passkey"  # alone; it has verified its user
UPSTREAM_AUTH = "upstream"  # another provider
UPSTREAM_AND_CODE = "upstream+otp"
UPSTREAM_AND_PASSKEY = "upstream+passkey"
LINK = "link"  # a link in a mail that sets a new password
LINK_AND_CODE = "link+otp"
LINK_AND_PASSKEY = "link+passkey"
TOKEN_AUTH = "token"  # noqa: S105 - a session token
GAME_AUTH = "gsid"  # a login for a game session, and for a device
GUEST_AUTH = "guest"  # a key of the player's device
TICKET = "ticket"  # a ticket that a store has given to the game
TICKET_AND_CODE = "ticket+otp"
TICKET_AUTHS = (TICKET, TICKET_AND_CODE)

_WITH_CODE = {
    PASSWORD: PASSWORD_AND_CODE,
    UPSTREAM_AUTH: UPSTREAM_AND_CODE,
    LINK: LINK_AND_CODE,
    TICKET: TICKET_AND_CODE,
}
_WITH_PASSKEY = {PASSWORD: PASSWORD_AND_PASSKEY, UPSTREAM_AUTH: UPSTREAM_AND_PASSKEY, LINK: LINK_AND_PASSKEY}
# The values of `amr` (RFC 8176) for each way to sign in. Whether a passkey is in hardware is not known, so it is `pop`,
# neither `hwk` nor `swk`. `fed`, another provider, is not registered: RFC 8176 has no value for it, nor for a link.
_AMR: Mapping[str, tuple[str, ...]] = {
    PASSWORD: ("pwd",),
    PASSWORD_AND_CODE: ("pwd", "otp", "mfa"),
    PASSWORD_AND_PASSKEY: ("pwd", "pop", "user", "mfa"),
    PASSKEY: ("pop", "user", "mfa"),
    UPSTREAM_AUTH: ("fed",),
    UPSTREAM_AND_CODE: ("fed", "otp", "mfa"),
    UPSTREAM_AND_PASSKEY: ("fed", "pop", "user", "mfa"),
    TICKET: ("fed",),
    TICKET_AND_CODE: ("fed", "otp", "mfa"),
    LINK: (),
    LINK_AND_CODE: ("otp", "mfa"),
    LINK_AND_PASSKEY: ("pop", "user", "mfa"),
}
MAILED_CODE = "email"  # the second factor, as in `User.second_factors`
# The values of `acr`. Each includes those before it: a passkey verifies its user, so it is several factors.
ONE_FACTOR, SEVERAL_FACTORS, WITH_PASSKEY = ACR_VALUES = (
    "urn:sso:acr:password",
    "urn:sso:acr:mfa",
    "urn:sso:acr:passkey",
)


class AuthenticationContext(Struct, frozen=True):
    """How and when a user has authenticated. Only the functions of this module make one."""

    auth: str
    has_second_factor: bool  # a second factor, or a passkey that has verified its user, was proved in this sign-in
    is_fresh: bool = False  # the request that makes it contains the proof, so its time is now
    signed_in: datetime | None = None  # when the sign-in began that this one continues; None: now
    proved: datetime | None = None  # when the user last proved who they are, if it is not fresh

    @property
    def auth_time(self) -> int | None:
        """When the user authenticated, in Unix seconds. None: in this request; 0: no proof is known."""
        if self.is_fresh:
            return None
        return int(self.proved.timestamp()) if self.proved else 0

    def with_code(self, factor: str) -> "AuthenticationContext":
        """Adds a code of this factor that was checked in this request. Several factors stay as they are.

        A mailed code after a mailed link proves nothing more: both show that the person reads the same mails.
        """
        return self if self.auth == LINK and factor == MAILED_CODE else self._with_factor(_WITH_CODE)

    def with_passkey(self) -> "AuthenticationContext":
        """Adds a passkey that was checked in this request as a second factor. Several factors stay as they are."""
        return self._with_factor(_WITH_PASSKEY)

    def _with_factor(self, names: Mapping[str, str]) -> "AuthenticationContext":
        """A second factor proves a sign-in with another provider. It does not make a link or an old sign-in fresh."""
        auth = names.get(self.auth, self.auth)
        is_fresh = self.is_fresh or (self.auth in (UPSTREAM_AUTH, TICKET) and self.signed_in is None)
        return replace(self, auth=auth, has_second_factor=has_second_factor(auth), is_fresh=is_fresh)


class ContinuedSession(Protocol):
    """A browser session, as far as its authentication is concerned."""

    @property
    def auth(self) -> str: ...
    @property
    def created(self) -> datetime: ...
    @property
    def authenticated(self) -> datetime | None: ...


def by_password() -> AuthenticationContext:
    """The password was correct, or the user has just chosen it for a new account."""
    return AuthenticationContext(PASSWORD, has_second_factor=False, is_fresh=True)


def by_passkey() -> AuthenticationContext:
    """A passkey has verified its user."""
    return AuthenticationContext(PASSKEY, has_second_factor=True, is_fresh=True)


def by_provider(*, is_new_login: bool) -> AuthenticationContext:
    """Another provider has identified the user. ``is_new_login``: it says that the user has just authenticated."""
    return AuthenticationContext(UPSTREAM_AUTH, has_second_factor=False, is_fresh=is_new_login)


def by_earlier_provider_login(authenticated: datetime | None) -> AuthenticationContext:
    """Another provider has identified the user before this request, and states this time of authentication, or none."""
    return AuthenticationContext(UPSTREAM_AUTH, False, signed_in=authenticated, proved=authenticated)


def by_store_ticket() -> AuthenticationContext:
    """A store has confirmed the ticket of a game. Its player may have signed in there long ago."""
    return AuthenticationContext(TICKET, has_second_factor=False)


def by_mailed_link() -> AuthenticationContext:
    """The user has opened a link of a mail."""
    return AuthenticationContext(LINK, has_second_factor=False)


def by_first_factor(auth: str) -> AuthenticationContext:
    """The first step of a sign-in, of which ``auth`` was stored while the second was missing."""
    return AuthenticationContext(auth, has_second_factor=has_second_factor(auth), is_fresh=_is_proof(auth))


def by_ticket(auth: str, issued: datetime) -> AuthenticationContext:
    """A sign-in with ``auth`` was stored in a ticket. It is as old as the ticket, whatever the request contains."""
    proved = issued if _is_proof(auth) else None
    return AuthenticationContext(auth, has_second_factor(auth), signed_in=issued, proved=proved)


def continued(session: ContinuedSession) -> AuthenticationContext:
    """The sign-in of a browser goes on after a change, which proves nothing: it keeps its times and methods."""
    return AuthenticationContext(
        session.auth, has_second_factor(session.auth), signed_in=session.created, proved=session.authenticated
    )


def after_password(session: ContinuedSession, *, has_factor: bool) -> AuthenticationContext:
    """A form contained the password, but no code: it is a sign-in only for a user without a second factor."""
    return continued(session) if has_factor else by_password()


def by_device_key() -> AuthenticationContext:
    """A key of the player's device has signed the request."""
    return AuthenticationContext(GUEST_AUTH, has_second_factor=False, is_fresh=True)


def by_session_token(auth: str, *, second_factor: bool) -> AuthenticationContext:
    """A session token continues the sign-in of a program, which was made with ``auth``."""
    kept = (GAME_AUTH, GUEST_AUTH, *TICKET_AUTHS)
    return AuthenticationContext(auth if auth in kept else TOKEN_AUTH, second_factor)


def by_browser(auth: str, auth_time: int) -> AuthenticationContext:
    """A user who has signed in to a browser with ``auth`` at ``auth_time`` has confirmed the sign-in of a game.

    ``auth_time`` is in Unix seconds, 0 if no proof is known.
    """
    proved = datetime.fromtimestamp(auth_time, UTC) if auth_time else None
    return AuthenticationContext(GAME_AUTH, has_second_factor(auth), proved=proved)


def amr_of(auth: str) -> list[str]:
    """Returns the authentication methods of a sign-in; ``auth`` is the name that the browser session has for it."""
    return list(_AMR.get(auth, ()))


def has_second_factor(auth: str) -> bool:
    return "mfa" in _AMR.get(auth, ())


def acr_of(auth: str) -> str:
    methods = amr_of(auth)
    if "pop" in methods:
        return WITH_PASSKEY
    return SEVERAL_FACTORS if "mfa" in methods else ONE_FACTOR


def satisfies_acr(auth: str, acr_values: Collection[str]) -> bool:
    """Returns whether a sign-in satisfies one of the values, if there are any."""
    reached = ACR_VALUES[: ACR_VALUES.index(acr_of(auth)) + 1]
    return not acr_values or any(value in reached for value in acr_values)


def is_by_link(auth: str) -> bool:
    return auth in (LINK, LINK_AND_CODE, LINK_AND_PASSKEY)


def _is_proof(auth: str) -> bool:
    return auth not in (UPSTREAM_AUTH, TICKET) and not is_by_link(auth)
