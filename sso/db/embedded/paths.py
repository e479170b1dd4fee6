"""The directories of an embedded PostgreSQL: its files and its socket."""

import os
import stat
from pathlib import Path

from sso.db.embedded.files import (
    Account,
    EmbeddedError,
    directory_lock,
    make_directory,
    postgres_account,
    reachable,
    short_hash,
    sync,
)

# If root starts the server, for files that PostgreSQL's account cannot reach in their usual place.
SYSTEM_DIRECTORY = Path("/var/lib/sso")
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, less the final NUL


def has_database(data_dir: Path) -> bool:
    """Whether a data directory has a database, even one whose upgrade or restore was interrupted."""
    home, pointer = data_dir / "postgres", data_dir / "postgres.location"
    try:
        if pointer.exists():
            home = Path(pointer.read_text().strip())
            if not home.is_dir():
                return True  # postgres_directory() reports it
        return any((home / name).exists() for name in ("data", "data.upgraded", "data.restored"))
    except PermissionError:
        return True  # join() reports it


def postgres_directory(data_dir: Path) -> Path:
    """Returns the directory of PostgreSQL for a data directory; creates both if they do not exist."""
    data_dir = data_dir.resolve()
    as_root = os.geteuid() == 0
    if not data_dir.exists():
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        # As root, PostgreSQL's account needs to pass through it.
        make_directory(data_dir, 0o711 if as_root else 0o700)
    inside = data_dir / "postgres"
    pointer = data_dir / "postgres.location"
    with directory_lock(data_dir):
        if pointer.exists():
            home = Path(pointer.read_text().strip())
            if not home.is_absolute() or not home.is_dir():
                raise EmbeddedError(
                    f"{pointer} says that the database is in {str(home)!r}, which is not a directory: "
                    "restore it, or remove this file to start with an empty database"
                )
            return home
        if not as_root or reachable(data_dir, postgres_account(inside)):
            make_directory(inside, 0o711 if as_root else 0o700)
            return inside
        if (inside / "data").exists():
            raise EmbeddedError(
                f"the account of PostgreSQL cannot reach {inside / 'data'}: "
                "let other users pass through the directories above it (chmod o+x)"
            )
        home = _system_home(data_dir)
        draft = data_dir / "postgres.location.new"
        draft.write_text(f"{home}\n")
        sync(draft)
        draft.rename(pointer)
        sync(data_dir)
        return home


def _system_home(data_dir: Path) -> Path:
    """Creates a directory in SYSTEM_DIRECTORY. An existing one is never used: it belongs to another installation."""
    base = system_directory()
    name = f"data-{short_hash(data_dir)}"
    number = 1
    while (home := base / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    make_directory(home, 0o711)
    (home / "belongs-to").write_text(f"{data_dir}\n")  # for the administrator
    return home


def system_directory() -> Path:
    make_directory(SYSTEM_DIRECTORY, 0o755)
    status = SYSTEM_DIRECTORY.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
        raise EmbeddedError(f"{SYSTEM_DIRECTORY} must be a directory that only root can write to")
    return SYSTEM_DIRECTORY


def socket_path(home: Path) -> Path:
    """Returns the path of the directory of the socket."""
    directory = home / "socket"
    # asyncpg ends the path at a comma.
    if len(os.fsencode(directory / SOCKET_NAME)) > SOCKET_PATH_LIMIT or "," in str(directory):
        return Path("/tmp", f"sso-{short_hash(home)}")  # noqa: S108 - socket_directory() checks it
    return directory


def socket_directory(home: Path, account: Account) -> Path:
    """Returns the directory of the socket; creates it if it does not exist."""
    directory = socket_path(home)
    make_directory(directory, 0o700, account)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != account.uid or status.st_mode & 0o077:
        raise EmbeddedError(f"{directory} must be a directory of mode 0700 of uid {account.uid}: remove it")
    return directory
