"""Who must have a second factor (SSO_REQUIRE_2FA). Users without one set it up when they sign in by page."""

from typing import Literal

from sso.accounts.model import User
from sso.accounts.ports import ApplicationDirectory
from sso.core.net import Address

RequiredOf = Literal["off", "admins", "all"]


class SecondFactorRequirement:
    def __init__(self, required_of: RequiredOf, applications: ApplicationDirectory) -> None:
        self._required_of = required_of
        self._applications = applications

    async def must_enrol(self, user: User, address: Address) -> bool:
        """Returns True if the user must have a second factor and has none."""
        if self._required_of == "off" or user.second_factors:
            return False
        return self._required_of == "all" or await self._applications.is_administrator(user, address)
