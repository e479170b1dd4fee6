"""Lists of the management API: all pages of a list, for exports."""

from collections.abc import Mapping
from typing import Any

from sso.console.visit import ConsoleVisit

MAX_ROWS = 10_000
PAGE = 200  # rows that are read at a time


async def read_all(
    visit: ConsoleVisit, path: str, query: Mapping[str, str], page: int, most: int, **variables: Any
) -> list[dict[str, Any]]:
    """Returns the records of a list, at most ``most``, reading ``page`` of them at a time."""
    records: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None and len(records) < most:
        found = await visit.call("GET", path, query={**query, "limit": str(page), "after": after}, **variables)
        records += found.members["data"]
        after = found.members.get("next")
    return records[:most]
