"""Owners, modes and locks of the files of an embedded PostgreSQL."""

import contextlib
import fcntl
import grp
import hashlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from sso.core.errors import OperatorError

LOG_LIMIT = 10_000_000
# No distribution assigns these, and systemd's ranges for homes and dynamic users end before them or begin after them.
UNUSED_UIDS = range(60800, 60900)


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
    """Returns our own account. PostgreSQL refuses to run as root: root gets the owner of the data, or an unused uid."""
    if os.geteuid():
        return Account(os.geteuid(), os.getegid())
    try:
        owner = (home / "data").stat()
    except FileNotFoundError:
        uid = next(uid for uid in UNUSED_UIDS if not _has_name(uid))
        return Account(uid, uid)
    if owner.st_uid == 0:
        uid = UNUSED_UIDS[0]
        raise EmbeddedError(
            f"{home / 'data'} belongs to root, and PostgreSQL cannot run as root: run `chown -R {uid}:{uid}` for it"
        )
    return Account(owner.st_uid, owner.st_gid)


def _has_name(number: int) -> bool:
    for find in (pwd.getpwuid, grp.getgrgid):
        with contextlib.suppress(KeyError):
            find(number)
            return True
    return False


def nobody() -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedError(
            "PostgreSQL cannot run as root, and the account nobody does not exist: start as another user"
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def give(folder: Path, old: Account, new: Account) -> None:
    """Makes another account the owner of a folder and of all in it that belongs to the old one.

    Links are not followed. The folder itself comes last: it shows whether all of it was done.
    """
    if not folder.exists():
        return
    for directory, directories, files in os.walk(folder, topdown=False):
        for path in (Path(directory, name) for name in (*directories, *files)):
            if path.lstat().st_uid == old.uid:
                os.chown(path, *new, follow_symlinks=False)
    os.chown(folder, *new, follow_symlinks=False)


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
