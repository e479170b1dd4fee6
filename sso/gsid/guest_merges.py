"""What the page of a session needs to know about the guest that is linked to the account of the login."""

from typing import Protocol

from msgspec import Struct

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.model import User


class GuestPreview(Struct, frozen=True):
    """What would move from a guest to an account, and which rules the account would gain."""

    keys: int
    store_accounts: int
    application_ids: tuple[int, ...]  # where the guest has data or roles
    roles: tuple[str, ...]
    groups: int
    tags: tuple[str, ...]
    purchases: tuple[str, ...]
    gains: tuple[str, ...]


class GuestRefused(Struct, frozen=True):
    """The guest exists, and cannot be merged into this account. Another account may do."""


class StoreAccountElsewhere(Struct, frozen=True):
    """A store account that the guest wanted to link in the game, and that belongs to another user."""

    provider: str
    identity: str


class GuestMerges(Protocol):
    async def conflict(self, link: GuestLink) -> StoreAccountElsewhere | None: ...

    async def preview(self, link: GuestLink, user: User) -> GuestPreview | GuestRefused | None:
        """Returns None if there is no such guest any more, or the session no longer links it."""

    async def merge(self, link: GuestLink, user: User) -> bool:
        """Merges the guest into the user, for the session of the link. Of several concurrent calls, one does so.

        Returns False if the session has ended, the guest cannot be merged, or the user was revoked since it was read.
        """

    async def is_merged(self, link: GuestLink, user: User) -> bool:
        """Returns whether the guest was merged into the user."""
