"""Audits exports of lists: files with many records, which leave the service."""

from collections.abc import Mapping
from typing import Any

from sso.admin.caller import AdminCaller
from sso.audit import trail
from sso.db.database import Database


class ExportAudit:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(
        self, caller: AdminCaller, exported: str, filters: Mapping[str, str], records: int | None = None
    ) -> None:
        """Writes an entry with what is exported, such as ``users``, and how many records the file has, if known."""
        after: dict[str, Any] = {"filter": {name: value for name, value in filters.items() if value}}
        if records is not None:
            after["records"] = records
        await trail.write(self._database, caller.actor, "list.export", exported, None, after)
