"""A data directory of PostgreSQL, which the embedded servers of all tests start with: migrated, with built-in rows.

It is created once for all processes of a test run; a copy takes a fraction of the time of initdb and the migrations.
Only ``sso serve`` in a forked process and ``join_prepared`` use it: other commands may want an empty database.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import trio

from sso.db.database import Database
from sso.db.embedded import Embedded, join, start
from sso.db.embedded.binaries import Binaries
from sso.db.embedded.files import Account, Lock
from sso.db.migrate import migrate
from sso.perm.stores.seed import seed_central_application

_FOLDER = "FOLDER_OF_PREPARED_DATA"  # an environment variable, for the other processes of this run
_create_data = start.create_data


@contextmanager
def prepared_data() -> Iterator[None]:
    """Chooses the folder for the prepared data directory, and removes it at the end. For the first process of a run."""
    with tempfile.TemporaryDirectory(prefix="sso-prepared-") as folder:
        Path(folder).chmod(0o711)  # as root, PostgreSQL runs under another account, which needs access
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]


def shared_folder() -> str | None:
    """Returns the folder that all processes of this run share, None outside of a test run."""
    return os.environ.get(_FOLDER)


def use_prepared_data() -> None:
    """New databases of this process are copies."""
    start.create_data = _copy_data


def join_prepared(data_dir: Path) -> Embedded:
    """Starts the PostgreSQL of a data directory; a new one is a copy."""
    prepare()
    with mock.patch.object(start, "create_data", _copy_data):
        return join(data_dir)


def prepare() -> None:
    """Creates the data directory, unless a process of this run has done so. Does nothing outside of a test run."""
    if _FOLDER not in os.environ:
        return
    folder = Path(os.environ[_FOLDER])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _prepared().exists():
            server = join(folder / "new")
            pid = server.pid()
            migrate(server.dsn())
            with ThreadPoolExecutor(1) as thread:  # this one may already run Trio
                thread.submit(trio.run, _seed, server.dsn()).result()
            server.close()
            wait_until_ended(pid)
            (folder / "new/postgres/data").rename(_prepared())


async def _seed(dsn: str) -> None:
    """Writes what the first worker of a service would write."""
    async with Database.open(dsn, 1) as database:
        await seed_central_application(database)


def copy_prepared(data: Path) -> None:
    """Copies the data directory for a server that a test starts itself."""
    prepare()
    _copy(data)


def wait_until_ended(pid: int | None) -> None:
    """Waits for a postmaster: it still writes files for a moment after it stops accepting connections."""
    end = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.02)


def _prepared() -> Path:
    return Path(os.environ.get(_FOLDER, "/nonexistent"), "data")


def _copy_data(home: Path, account: Account, binaries: Binaries, running: Lock) -> None:
    prepared = _prepared()
    if not prepared.exists() or prepared.stat().st_uid != account.uid:
        _create_data(home, account, binaries, running)
        return
    new = home / "data.new"
    shutil.rmtree(new, ignore_errors=True)  # of an interrupted attempt
    _copy(new)
    new.rename(home / "data")


def _copy(new: Path) -> None:
    subprocess.run(["cp", "--archive", "--reflink=auto", str(_prepared()), str(new)], check=True)
