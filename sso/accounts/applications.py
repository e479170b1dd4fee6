"""What a login must know of applications. Whoever keeps them says it; the two are joined where services are built."""

from typing import Protocol

from sso.accounts.model import User
from sso.core.errors import ApiError
from sso.core.net import Address


class LoginNotAllowed(ApiError):
    """Right credentials, but not for this application."""

    status = 403
    code = "access_denied"
    message = "login not allowed"


class ApplicationsAtLogin(Protocol):
    async def of_service(self, service_jwt: str, named: tuple[int, ...], client: Address) -> tuple[int, ...]:
        """The applications of a login with a service JWT: it must be of a named one, or is itself the one."""

    async def check_exist(self, named: tuple[int, ...]) -> None:
        """Refuse what is no application, or is removed."""

    async def client_address(
        self, real: Address, said: str | None, signature: str | None, named: tuple[int, ...]
    ) -> Address:
        """The address that counts: the real one, or the one that a key of a named application vouches for."""

    async def permissions(self, user: User, address: Address, named: tuple[int, ...]) -> dict[str, list[str]]:
        """What the user may do in each, by its id; LoginNotAllowed if the user may not log in to one of them."""

    async def knows_email_secret(self, application_id: int, secret: str) -> bool:
        """Whether this is the secret that lets an application see login e-mails; 0 is the central application."""

    async def is_administrator(self, user: User, address: Address) -> bool:
        """Whether the user has rights beyond their own data, at that address."""

    async def title(self, named: tuple[int, ...]) -> str:
        """What people know the last of them by (with a game and its studio's application, the game); "" for none."""
