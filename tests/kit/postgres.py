"""A real PostgreSQL for the whole test run, and a new database for each test that needs one."""

import asyncio
import itertools
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import asyncpg

from sso.db.embedded.start import SETTINGS
from sso.db.migrate import migrate
from tests.kit.emptied_database import NewDatabase
from tests.kit.kept_connection import run_on_kept_connection
from tests.kit.prepared_data import join_prepared, wait_until_ended
from tests.kit.server import until

TEST_SETTINGS = {
    "max_connections": "300",  # several servers, each with several workers, use it at the same time
    "max_wal_size": "1GB",
    "checkpoint_timeout": "1d",
    "autovacuum_naptime": "10min",
}
# Nothing must outlive the run, so nothing waits for the disk, which may take seconds.
NOT_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
_numbers = itertools.count(1)


class Postgres:
    """The server of this test run. Databases are copies of a migrated template, which is faster than migrating each."""

    def __init__(self, dsn: str, pid: Callable[[], int] = int) -> None:
        self._dsn = dsn
        self._template = ""
        self._new: NewDatabase | None = None
        self._unused: list[str] = []  # as good as new
        self.pid = pid  # of the postmaster

    def fresh(self) -> str:
        """Returns a migrated database that contains the built-in rows alone."""
        if self._unused:
            return self._unused.pop()
        if not self._new:
            self._template = self._create(self._name(self._dsn))
            migrate(self._template)  # unless it is a copy of the prepared data, which is migrated
            self._new = with_connection(self._template, NewDatabase.read)
        return self._create(self._name(self._template))

    def drop(self, dsn: str) -> None:
        """Ends the use of a database. It is dropped, unless emptying it makes it as good as new."""
        if self._new and run_on_kept_connection(dsn, self._new.restore):
            self._unused.append(dsn)
        else:
            self._run(f'DROP DATABASE "{self._name(dsn)}" WITH (FORCE)')

    def set_durable(self, durable: bool) -> None:
        """Sets whether changes survive a crash, for tests that look at these settings."""
        value = "on" if durable else "off"
        for name in NOT_DURABLE:
            self._run(f"ALTER SYSTEM SET {name} = {value}")
        self._run("SELECT pg_reload_conf()")
        until(lambda: all(fetch(self._dsn, f"SHOW {name}") == value for name in NOT_DURABLE))

    def empty(self) -> str:
        """Returns a database that is not migrated."""
        return self._create("")

    def _create(self, template: str) -> str:
        name = f"t{os.getpid()}_{next(_numbers)}"
        self._run(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
        return self._dsn.replace(f"/{self._name(self._dsn)}?", f"/{name}?", 1)

    def _name(self, dsn: str) -> str:
        return dsn.partition("?")[0].rpartition("/")[2]

    def _run(self, sql: str) -> None:
        execute(self._dsn, sql)


def execute(dsn: str, sql: str) -> None:
    """Runs a statement without a time limit."""
    with_connection(dsn, lambda connection: connection.execute(sql))


def fetch(dsn: str, sql: str) -> Any:
    """Returns the value of a statement."""
    return with_connection(dsn, lambda connection: connection.fetchval(sql))


def with_connection(dsn: str, function: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return await function(connection)
        finally:
            await connection.close()

    with asyncio.Runner() as runner:
        return runner.run(run())


@contextmanager
def running(**settings: str) -> Iterator[Postgres]:
    with tempfile.TemporaryDirectory(prefix="sso-tests-") as folder:
        Path(folder).chmod(0o711)  # as root, PostgreSQL runs under another account, which needs access
        with mock.patch.dict(SETTINGS, TEST_SETTINGS | settings):
            for name in NOT_DURABLE:  # otherwise they could not be changed
                del SETTINGS[name]
            server = join_prepared(Path(folder) / "data")
        try:
            running_server = Postgres(server.dsn(), lambda: server.pid() or 0)
            running_server.set_durable(False)
            yield running_server
        finally:
            pid = server.pid()
            if pid:
                os.kill(pid, signal.SIGQUIT)  # nothing needs to be written: the folder is removed
            server.close()
            wait_until_ended(pid)
