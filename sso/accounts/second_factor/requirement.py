"""Who must have a second factor, and use it (SSO_REQUIRE_2FA). Users without one set it up when they sign in by page.

With ``admins``, administrative rights need a sign-in with a second factor, however the session or token was obtained;
the console and the APIs check that. With ``all``, every sign-in needs one as well.
"""

from typing import Literal

from sso.accounts.errors import SecondFactorNotUsed
from sso.accounts.model import SignedIn, User
from sso.accounts.ports import ApplicationDirectory
from sso.core.net import Address

RequiredOf = Literal["off", "admins", "all"]


class UsedFactorRequirement:
    """What programs need with ``all``: they cannot show a page that asks for the factor."""

    def __init__(self, required_of: RequiredOf, base_url: str) -> None:
        self._is_required = required_of == "all"
        self._base_url = base_url

    def check_sign_in(self, signed_in: SignedIn) -> None:
        """Like `check`, for a user who also must still have a second factor."""
        has_one = bool(signed_in.user.second_factors)
        self.check(second_factor=has_one and signed_in.authentication.has_second_factor)

    def check(self, *, second_factor: bool) -> None:
        """Raises SecondFactorNotUsed if a sign-in, of which a program wants a token, must have used one and has not."""
        if self._is_required and not second_factor:
            raise SecondFactorNotUsed(self._base_url)


class SecondFactorRequirement:
    def __init__(self, required_of: RequiredOf, applications: ApplicationDirectory) -> None:
        self._required_of = required_of
        self._applications = applications

    async def must_enrol(self, user: User, address: Address) -> bool:
        """Returns True if the user must have a second factor and has none."""
        return not user.second_factors and await self._concerns(user, address)

    async def must_prove(self, signed_in: SignedIn, address: Address) -> bool:
        """Returns True if the user has a second factor, which is required, and has not used it for this sign-in."""
        if signed_in.authentication.has_second_factor or not signed_in.user.second_factors:
            return False
        return await self._concerns(signed_in.user, address)

    async def _concerns(self, user: User, address: Address) -> bool:
        if self._required_of == "off":
            return False
        return self._required_of == "all" or await self._applications.is_administrator(user, address)
