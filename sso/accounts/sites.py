"""The sites that may know who somebody is, as the account page shows them. Another room keeps them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class SiteLine:
    client_id: str
    name: str
    scopes: tuple[str, ...]
    since: datetime
    last_used: datetime | None


class Sites(Protocol):
    async def list(self, user_id: str) -> list[SiteLine]: ...

    async def remove(self, user_id: str, client_id: str) -> None:
        """The site has no access any more, from now on."""
