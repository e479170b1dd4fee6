"""What commands do with invitations, on this machine or on a server."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

ListedInvitations: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True)
class NewInvitation:
    link: str
    is_mailed: bool
    works: bool = True  # False: registration is closed at present


class InvitationAdministration(Protocol):
    async def create(self, login: str, days: int, lang: str) -> NewInvitation:
        """Fails if the login has an account."""
        ...

    async def list(self) -> ListedInvitations:
        """Returns id, login, created and expires (Unix seconds) of those that can still be used."""
        ...

    async def revoke(self, invitations: ListedInvitations) -> int:
        """Returns how many are revoked."""
        ...
