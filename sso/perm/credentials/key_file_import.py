"""Imports the key files of this node into the database at the start, and again when they change."""

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.perm.credentials.key_files import KeyFiles
from sso.perm.stores.key_file_import import KeyFileConflict, KeyOfFile, import_key_files

SCAN_S = 1.0
REPEAT_S = 15.0  # for files of applications that did not exist yet, and files that another node has removed

log = structlog.get_logger()


class KeyFileImport:
    def __init__(self, database: Database, files: KeyFiles, node: str) -> None:
        self._database = database
        self._files = files
        self._node = node
        self._imported: list[KeyOfFile] | None = None
        self._imported_at = 0.0
        self._logged: set[KeyFileConflict] = set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        while True:
            try:
                await self.import_changes()
            except DatabaseError as error:
                log.warning("perm.key_file_import_failed", reason=str(error))
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await trio.sleep(SCAN_S)

    async def import_changes(self) -> None:
        """Does nothing if the files are unchanged and the last import is not long ago."""
        keys = [KeyOfFile(key.application_id, key.id, key.pem) for key in await self._files.all()]
        is_due = bool(keys) and trio.current_time() - self._imported_at > REPEAT_S
        if keys == self._imported and not is_due:
            return
        result = await self._database.transaction(import_key_files, self._node, keys)
        self._imported, self._imported_at = keys, trio.current_time()
        for conflict in set(result.conflicts) - self._logged:
            log.error(
                "perm.key_file_conflicted",
                file=f"keys/{conflict.application_id}.pem",
                kid=conflict.id,
                other_node=conflict.node,
            )
        self._logged = set(result.conflicts)
