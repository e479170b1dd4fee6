"""Owners, modes and locks of the files of an embedded PostgreSQL."""

import contextlib
import fcntl
import hashlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from sso.core.errors import OperatorError

LOG_LIMIT = 10_000_000


class EmbeddedError(OperatorError):
    """The embedded PostgreSQL cannot be used."""


class Account(NamedTuple):
    """The user and group that PostgreSQL runs as."""

    uid: int
    gid: int


class Lock:
    """A flock. It is held until every copy of the descriptor is closed, including those in forked processes."""

    def __init__(self, path: Path) -> None:
        self.fd = open_file(path, os.O_RDWR)

    def take(self, mode: int) -> bool:
        """Returns False if another process holds the lock. ``mode`` is LOCK_SH or LOCK_EX."""
        try:
            fcntl.flock(self.fd, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        # Not LOCK_UN: that would release it for forked processes as well.
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def postgres_account(home: Path) -> Account:
    """Returns our own account. PostgreSQL refuses to run as root, so root gets the owner of the data, or ``nobody``."""
    if os.geteuid():
        return Account(os.geteuid(), os.getegid())
    try:
        owner = (home / "data").stat()
    except FileNotFoundError:
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            raise EmbeddedError(
                "PostgreSQL cannot run as root, and the account nobody does not exist: start as another user"
            ) from None
        return Account(nobody.pw_uid, nobody.pw_gid)
    if owner.st_uid == 0:
        raise EmbeddedError(f"{home / 'data'} belongs to root, and PostgreSQL cannot run as root: chown it to nobody")
    return Account(owner.st_uid, owner.st_gid)


def check_owner(home: Path) -> None:
    """Raises EmbeddedError if the files belong to another user."""
    for directory in (home, home / "data"):
        if os.geteuid() and directory.exists() and directory.stat().st_uid != os.geteuid():
            raise EmbeddedError(f"{directory} belongs to uid {directory.stat().st_uid}: run as that user")


def reachable(path: Path, account: Account) -> bool:
    """Returns whether the account, without supplementary groups, may execute a path and enter all directories above."""
    path = path.resolve()
    for part in (path, *path.parents):
        status = part.stat()
        shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
        if not status.st_mode >> shift & 1:
            return False
    return True


def make_directory(path: Path, mode: int, owner: Account | None = None) -> None:
    """Creates a directory unless it exists; an existing one is not changed."""
    try:
        path.mkdir(mode)
    except FileExistsError:
        return
    if owner and os.geteuid() == 0:
        os.chown(path, *owner)
    path.chmod(mode)  # mkdir applies the umask


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """Opens or creates a file. A new one belongs to the owner of its directory, even if root creates it."""
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
def directory_lock(directory: Path) -> Iterator[None]:
    """Holds an exclusive lock. It is held only briefly, so waiting for it has no deadline."""
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
