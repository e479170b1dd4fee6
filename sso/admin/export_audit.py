"""Audits exports of lists: files with many records, which leave the service."""

from collections.abc import Mapping

from sso.admin.caller import AdminCaller
from sso.db.database import Database
from sso.perm.stores import audit


class ExportAudit:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, caller: AdminCaller, exported: str, filters: Mapping[str, str], records: int) -> None:
        """Writes an entry with what was exported, such as ``users``, and how many records the file has."""
        used = {name: value for name, value in filters.items() if value}
        after = {"filter": used, "records": records}
        await audit.write(self._database, caller.actor, "list.export", exported, None, after)
