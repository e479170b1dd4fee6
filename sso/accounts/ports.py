"""Interfaces of other packages that logins need. ``sso.services`` passes in the implementations."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar

from msgspec import Struct

from sso.accounts.model import User
from sso.core.net import Address
from sso.db.transaction import Transaction

Result = TypeVar("Result")


class LoginWrites(Protocol):
    """Changes of logins. Permissions may depend on the domain of a login."""

    async def write_login(self, user_id: str, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        """Returns ``work(tx)``, called in one transaction that records which permissions of the user change."""


class ApplicationDirectory(Protocol):
    """Applications and the permissions that users have in them."""

    async def service_applications(
        self, service_jwt: str, application_ids: tuple[int, ...], client: Address
    ) -> tuple[int, ...]:
        """Returns the applications of a login with a service JWT.

        The JWT must belong to one of ``application_ids``; if there are none, its own application is returned.
        """

    async def require_existing(self, field: str, application_id: int) -> None:
        """Raises FieldError for the field if the application that it names does not exist or was removed."""

    async def client_address(
        self, peer: Address, claimed: str | None, signature: str | None, application_ids: tuple[int, ...]
    ) -> Address:
        """Returns the claimed address if a key of one of the applications has signed it, else the peer's."""

    async def permissions(self, user: User, address: Address, application_ids: tuple[int, ...]) -> dict[str, list[str]]:
        """Returns the user's permissions by application id.

        Raises LoginNotAllowed if the user may not log in to one of the applications, and Banned, which is a kind of
        it, for a ban there or everywhere.
        """

    async def is_email_secret(self, application_id: int, secret: str) -> bool:
        """Returns True if the application may read login e-mails with this secret. 0 is the central application."""

    async def is_administrator(self, user: User, address: Address) -> bool:
        """Returns True if the user, at this address, has rights beyond their own data."""

    async def title(self, application_ids: tuple[int, ...]) -> str:
        """Returns the name of the last application, which is the game if a studio's application precedes it.

        Returns "" if there is no application.
        """


class ConnectedSite(Struct, frozen=True):
    """A web site that has access to a user's account."""

    client_id: str
    name: str
    scopes: tuple[str, ...]
    since: datetime
    last_used: datetime | None
    logo: str = ""  # a small image as a data URI; others would tell the site when the account page is opened


class ConnectedSiteStore(Protocol):
    async def list(self, user_id: str) -> list[ConnectedSite]: ...

    async def remove(self, user_id: str, client_id: str) -> None:
        """Revokes the site's access to the account."""


class SignInProvider(Struct, frozen=True):
    """Another provider with which users can sign in, as a sign-in form shows it."""

    provider_id: str
    name: str


class SignInProviders(Protocol):
    @property
    def buttons(self) -> tuple[SignInProvider, ...]: ...


class AccessTokenLookup(Protocol):
    """Access tokens of web sites."""

    async def is_access_token_valid(self, digest: bytes, *, first_party: bool) -> bool: ...
