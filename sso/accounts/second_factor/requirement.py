"""Who must have a second factor, and use it (SSO_REQUIRE_2FA). Users without one set it up when they sign in by page.

With ``admins``, administrative rights need a sign-in with a second factor, however the session or token was obtained;
the console and the APIs check that. With ``all``, every sign-in needs one as well.
"""

from typing import Literal

from sso.accounts.errors import SecondFactorNotSetUp
from sso.accounts.model import SignedIn, User
from sso.accounts.ports import ApplicationDirectory
from sso.core.net import Address

RequiredOf = Literal["off", "admins", "all"]


class SecondFactorRequirement:
    def __init__(self, required_of: RequiredOf, applications: ApplicationDirectory, base_url: str) -> None:
        self._required_of = required_of
        self._applications = applications
        self._base_url = base_url

    async def must_enrol(self, user: User, address: Address) -> bool:
        """Returns True if the user must have a second factor and has none."""
        return not user.second_factors and await self._concerns(user, address)

    async def must_prove(self, signed_in: SignedIn, address: Address) -> bool:
        """Returns True if the user has a second factor, which is required, and has not used it for this sign-in."""
        if signed_in.authentication.has_second_factor or not signed_in.user.second_factors:
            return False
        return await self._concerns(signed_in.user, address)

    def check_program(self, user: User) -> None:
        """Raises SecondFactorNotSetUp if a user without a second factor signs in to a program and needs one."""
        if self._required_of == "all" and not user.second_factors:
            raise SecondFactorNotSetUp(self._base_url)

    async def _concerns(self, user: User, address: Address) -> bool:
        if self._required_of == "off":
            return False
        return self._required_of == "all" or await self._applications.is_administrator(user, address)
