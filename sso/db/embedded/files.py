"""Owners, modes and locks of the files of an embedded PostgreSQL."""

import contextlib
import fcntl
import hashlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

LOG_LIMIT = 10_000_000


class EmbeddedError(Exception):
    """One line that says what is wrong and what to do."""


class Account(NamedTuple):
    """Whom PostgreSQL runs as."""

    uid: int
    gid: int


class Lock:
    """A flock; it lasts until every copy of the descriptor is closed, also those in forks."""

    def __init__(self, path: Path) -> None:
        self.fd = open_file(path, os.O_RDWR)

    def take(self, how: int) -> bool:
        try:
            fcntl.flock(self.fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        # Not LOCK_UN: that would let go for the forks as well.
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def account_of(home: Path) -> Account:
    """Our own, or for root, as PostgreSQL refuses root: the owner of the data, ``nobody`` for new data."""
    if os.geteuid():
        return Account(os.geteuid(), os.getegid())
    try:
        owner = (home / "data").stat()
    except FileNotFoundError:
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            raise EmbeddedError("PostgreSQL cannot run as root, and there is no account nobody: use another") from None
        return Account(nobody.pw_uid, nobody.pw_gid)
    if owner.st_uid == 0:
        raise EmbeddedError(f"{home / 'data'} belongs to root, and PostgreSQL cannot run as root: chown it to nobody")
    return Account(owner.st_uid, owner.st_gid)


def check_owner(home: Path) -> None:
    for directory in (home, home / "data"):
        if os.geteuid() and directory.exists() and directory.stat().st_uid != os.geteuid():
            raise EmbeddedError(f"{directory} belongs to uid {directory.stat().st_uid}: run as that user")


def reachable(path: Path, account: Account) -> bool:
    """Whether the account, without further groups, may pass through (or run) a path and all above it."""
    path = path.resolve()
    for part in (path, *path.parents):
        found = part.stat()
        shift = 6 if found.st_uid == account.uid else 3 if found.st_gid == account.gid else 0
        if not found.st_mode >> shift & 1:
            return False
    return True


def make_directory(path: Path, mode: int, owner: Account | None = None) -> None:
    """Make a directory unless it is there; one that is there is left as it is."""
    try:
        path.mkdir(mode)
    except FileExistsError:
        return
    if owner and os.geteuid() == 0:
        os.chown(path, *owner)
    path.chmod(mode)  # what the umask took away


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file of the directory; a new one belongs to whom the directory belongs to, also if root makes it."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(path, flags)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(fd, owner.st_uid, owner.st_gid)
    return fd


def open_log(home: Path) -> int:
    path = home / "postgres.log"
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(home / "postgres.log.1")
    return open_file(path, os.O_WRONLY | os.O_APPEND)


@contextlib.contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Held only for moments, so without a deadline."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
