"""Lists of the management API: all pages of a list, for exports."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from sso.console.visit import ConsoleVisit

MAX_ROWS = 10_000
PAGE = 200  # rows that are read at a time


async def read_all(
    visit: ConsoleVisit, path: str, query: Mapping[str, str], page: int, limit: int, **variables: Any
) -> list[dict[str, Any]]:
    """Returns the records of a list, at most ``limit``, reading ``page`` of them at a time."""
    return [record async for records in read_pages(visit, path, query, page, limit, **variables) for record in records]


async def read_pages(
    visit: ConsoleVisit, path: str, query: Mapping[str, str], page: int, limit: int, **variables: Any
) -> AsyncGenerator[list[dict[str, Any]]]:
    """Like `read_all`, page by page."""
    after: str | None = ""
    while after is not None and limit > 0:
        found = await visit.call("GET", path, query={**query, "limit": str(page), "after": after}, **variables)
        yield found.members["data"][:limit]
        limit -= len(found.members["data"])
        after = found.members.get("next")


async def exported_pages(
    visit: ConsoleVisit, path: str, query: Mapping[str, str], **variables: str
) -> AsyncGenerator[list[dict[str, Any]]]:
    """The pages of a list for a file. The audit entry is written before the first byte is sent, so that a download that
    is broken off has one too. How many records follow is not known then."""
    exported = path.strip("/")
    for name, value in variables.items():
        exported = exported.replace(f"<{name}>", value)
    audited = False
    async with aclosing(read_pages(visit, path, query, PAGE, MAX_ROWS, **variables)) as pages:
        async for records in pages:
            if not audited:
                filters = {name: value for name, value in query.items() if name not in ("sort", "order")}
                await visit.operations.exports.write(visit.caller, exported, filters)
                audited = True
            yield records
