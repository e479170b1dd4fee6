"""What commands do with signing keys, on this machine or on a server."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sso.cli.context import CommandFailure


@dataclass(frozen=True)
class ListedKey:
    kid: str
    algorithm: str
    side: bool
    state: str  # waiting, signing, published, expired or retired
    signs_from: datetime
    published_until: datetime | None
    retired: datetime | None


class KeyAdministration(Protocol):
    async def list(self) -> list[ListedKey]:
        """Returns the signing keys in the order in which they begin to sign."""
        ...

    async def rotate(self, algorithm: str, *, side: bool) -> str:
        """Returns the kid of the new key."""
        ...

    async def retire(self, kid: str) -> bool:
        """Returns False if there is no such key, or it is retired. Raises KeySigns if it is the one that signs."""
        ...


class KeySigns(CommandFailure):
    """A key that signs cannot be retired."""

    def __init__(self) -> None:
        super().__init__("this is the key that signs: create another one first, with `sso key rotate [--side]`")
