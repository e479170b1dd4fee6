"""Sites with devices whose users sign in with a browser (RFC 8628). The package ``oauth`` implements the interface."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sso.accounts.session_store import Session
from sso.core.language import Text
from sso.core.net import Address
from sso.web.brand import SiteBrand


class DeviceSite(Struct, frozen=True):
    """The site of a device that waits for a sign-in, as the confirmation page shows it."""

    title: str
    brand: SiteBrand | None  # its look, if it has one of its own
    knows: Sequence[Text]  # what it will know about the user
    offline: bool  # also while the user is away
    first_party: bool  # it may exchange its tokens for a user JWT, with which it acts for the user


class DeviceSites(Protocol):
    async def get(self, client_id: str, scopes: Sequence[str]) -> DeviceSite | None:
        """Returns None if the site does not exist or is disabled."""

    async def record_grant(self, session: Session, client_id: str, scopes: Sequence[str], address: Address) -> None:
        """Records that the session's user has let the device at this address sign in to the site."""
