"""Servers that one file of tests after another uses. Between two files a server becomes as good as new.

Rows and mails that a file has left are deleted; sequences go on, so that no id belongs to something else in the next
file. If a file has changed more than that, such as the processes of the server, the next file gets a new server.
Files that need the same settings and the same first rows share a server.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import asyncpg
import orjson

from tests.kit.emptied_database import NewDatabase, replace_rows, rows_as_statements, tables_with_rows
from tests.kit.kept_connection import run_on_kept_connection
from tests.kit.postgres import with_connection
from tests.kit.server import Server

# What the service itself writes while it runs.
_OWN_TABLES = ("change_stream", "node_workers", "time_window_progress")
# What workers read once and keep. They learn of a change by a message, some moments after it.
_KEPT_IN_MEMORY = ("brand_logos", "identity_providers", "signing_keys", "stored_brand")
_UNTOUCHED = {*_OWN_TABLES, *_KEPT_IN_MEMORY}
_KEPT_ROWS = "SELECT " + " || ".join(
    f"""(SELECT coalesce(string_agg(t::text, ';' ORDER BY t::text), '') FROM "{name}" t)""" for name in _KEPT_IN_MEMORY
)
# Workers keep compiled applications by id and revision. So neither comes again: the central application has greater
# revisions, and the others have new ids, unless a test has chosen an id.
_REVISIONS_OF_A_FILE = 1_000_000
_FIRST_APPLICATION_ID = 1_000_000
_SET_FIRST_APPLICATION_ID = f"SELECT setval('applications_application_id_seq', {_FIRST_APPLICATION_ID}, false)"
_CHOSEN_APPLICATION_IDS = f"""
    SELECT array_agg(application_id ORDER BY application_id) FROM applications
    WHERE application_id > 1 AND application_id < {_FIRST_APPLICATION_ID}
"""
# A server that waits for work needs as much processor time within a minute as its start.
_MAX_OTHER_FILES = 3  # after which a server is stopped


class SharedServers:
    """Starts servers when files need them, and keeps some for the next files."""

    def __init__(self, start: Callable[[dict[str, str]], AbstractContextManager[Server]]) -> None:
        self._start = start
        self._servers: dict[bytes, _SharedServer] = {}

    @contextmanager
    def use(self, document: dict[str, Any] | None = None, /, **settings: str) -> Iterator[Server]:
        """Yields a server with these settings to which the document has been applied."""
        key = orjson.dumps([settings, document], option=orjson.OPT_SORT_KEYS)
        if key not in self._servers:
            self._servers[key] = _SharedServer(lambda: self._start(settings), document)
        with self._servers[key].use() as server:
            self._close_unused()
            yield server

    def close(self) -> None:
        for shared in self._servers.values():
            shared.close()

    def _close_unused(self) -> None:
        for shared in self._servers.values():
            shared.other_files += not shared.is_used
            if shared.other_files > _MAX_OTHER_FILES:
                shared.close()


class _SharedServer:
    def __init__(self, start: Callable[[], AbstractContextManager[Server]], document: dict[str, Any] | None) -> None:
        self._start = start
        self._document = document
        self._context: AbstractContextManager[Server] | None = None
        self._server: Server | None = None
        self._new: _NewServer | None = None
        self.is_used = False
        self.other_files = 0  # that were run since the last use

    @contextmanager
    def use(self) -> Iterator[Server]:
        if self._server is None:
            self._context = self._start()
            self._server = self._context.__enter__()
            if self._document:
                self._server.apply(self._document)
            self._new = _NewServer.read(self._server)
        assert self._new is not None
        self.is_used, self.other_files = True, 0
        yield self._server
        self.is_used = False
        if not self._new.restore(self._server):
            self.close()

    def close(self) -> None:
        context, self._context, self._server = self._context, None, None
        if context:
            context.__exit__(None, None, None)


@dataclass
class _NewServer:
    """What a server has when it is new."""

    workers: list[int]
    settings: dict[str, str]
    files: set[Path]
    database: "_ServedDatabase"

    @classmethod
    def read(cls, server: Server) -> Self:
        database = with_connection(server.settings["SSO_DATABASE_URL"], _ServedDatabase.read)
        return cls(server.workers(), dict(server.settings), _files(server), database)

    def restore(self, server: Server) -> bool:
        """Returns False if the server is not as good as new."""
        shutil.rmtree(server.folder / "data/mail", ignore_errors=True)
        with suppress(OSError):  # it does not exist, or has files
            (server.folder / "data/keys").rmdir()
        if (server.workers(), server.settings, _files(server)) != (self.workers, self.settings, self.files):
            return False
        if not run_on_kept_connection(self.settings["SSO_DATABASE_URL"], self.database.restore):
            return False
        os.truncate(server.folder / "server.log", 0)  # the server appends to it
        return True


def _files(server: Server) -> set[Path]:
    return set(server.folder.rglob("*"))


@dataclass
class _ServedDatabase:
    """The database of a server that has just started."""

    new: NewDatabase
    kept_in_memory: str
    chosen_application_ids: list[int] | None
    refilling: str
    revision: int = 0  # of the central application

    @classmethod
    async def read(cls, connection: asyncpg.Connection) -> Self:
        await connection.execute(_SET_FIRST_APPLICATION_ID)
        refilling = await rows_as_statements(connection, await _changing_tables(connection))
        return cls(
            await NewDatabase.read(connection),
            await connection.fetchval(_KEPT_ROWS),
            await connection.fetchval(_CHOSEN_APPLICATION_IDS),
            "; ".join(refilling),
        )

    async def restore(self, connection: asyncpg.Connection) -> bool:
        """Returns False if other rows than those of requests have changed, or if a request still runs."""
        if await connection.fetchval(_CHOSEN_APPLICATION_IDS) != self.chosen_application_ids:
            return False
        if await connection.fetchval(_KEPT_ROWS) != self.kept_in_memory:
            return False
        if not await self.new.differs_in_rows(connection):
            return False
        self.revision += _REVISIONS_OF_A_FILE
        refilling = f"{self.refilling}; UPDATE applications SET revision = {self.revision}"
        await connection.execute("SET lock_timeout = '10s'")
        try:
            await replace_rows(connection, await _changing_tables(connection), refilling)
        except (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError):
            return False
        return True


async def _changing_tables(connection: asyncpg.Connection) -> list[str]:
    return [table for table in await tables_with_rows(connection) if table not in _UNTOUCHED]
