"""The archive of the write-ahead log (WAL) of an embedded PostgreSQL, for point-in-time recovery.

``sso serve`` stores the setting SSO_WAL_ARCHIVE in the file ``wal_archive`` beside ``data``, and every command that
starts PostgreSQL reads it there: changes by a command without the setting must be archived as well.

Each database has its own folder in the archive, named after its system identifier. Databases can therefore share an
archive, and the database after `sso upgrade-db`, which starts counting again, never meets the files of the old one.

The file ``wal_archive_folder`` beside ``data`` names that folder, which is created once. If it is missing later, the
disk of the archive may not be mounted: nothing is created on the mount point, and PostgreSQL keeps the segments.
"""

import contextlib
import os
import shlex
import struct
from pathlib import Path

from sso.db.embedded.files import Account, EmbeddedError, make_directory, reachable, sync

ARCHIVE_TIMEOUT_S = 60  # at most this much is lost with the machine
SUFFIX = ".gz"  # a segment that is archived early is mostly empty
_SYSTEM_IDENTIFIER = struct.Struct("=Q")  # the first field of pg_control

# PostgreSQL repeats the command until it succeeds. A segment appears under its name when it is on the disk, and never
# replaces another one. After a crash, PostgreSQL may archive a segment a second time: that succeeds if it is the same.
_ARCHIVE = """set -e; to={folder}/%f.gz; new={folder}/.%f.part
if [ -e "$to" ]; then gzip -dc "$to" | cmp -s - %p; exit; fi
gzip -1c <%p >"$new"; sync "$new"; mv -n "$new" "$to"; [ ! -e "$new" ]; sync {folder}"""

# Status 1 means that the archive ends here. A status above 125 stops the recovery: the archive cannot be read.
_RESTORE = """cd {folder} || exit 200; [ -e %f.gz ] || exit 1; gzip -dc %f.gz >"$OLDPWD/%p" || exit 201"""


def stored_archive(home: Path) -> Path | None:
    return _stored_path(home / "wal_archive")


def _stored_path(file: Path) -> Path | None:
    try:
        return Path(file.read_text().rstrip("\n"))
    except FileNotFoundError:
        return None


def archive_settings(home: Path, account: Account) -> dict[str, str]:
    """Returns the settings for the start of PostgreSQL, and prepares the folder of its archive."""
    archive = stored_archive(home)
    if archive is None:
        return {"archive_mode": "off"}
    folder = archive_folder(archive, home / "data")
    with contextlib.suppress(OSError):  # the archive may be away for a while; PostgreSQL keeps the segments until then
        _create_once(folder, home / "wal_archive_folder", account)
        _archive_history_files(home / "data/pg_wal", account)
    return {
        "archive_mode": "on",
        "archive_timeout": f"{ARCHIVE_TIMEOUT_S}s",
        "archive_command": _ARCHIVE.format(folder=_quoted(folder)),
    }


def _create_once(folder: Path, record: Path, account: Account) -> None:
    """Creates the folder, unless the record says that it has existed: then only the mount point would get it."""
    if _stored_path(record) != folder:
        make_directory(folder, 0o700, account)
        _store_path(record, folder)


def archive_folder(archive: Path, data: Path) -> Path:
    """The folder for a database; ``data`` is its data directory, or a copy of it."""
    with (data / "global/pg_control").open("rb") as file:
        (identifier,) = _SYSTEM_IDENTIFIER.unpack(file.read(_SYSTEM_IDENTIFIER.size))
    return archive / str(identifier)


def restore_command(folder: Path) -> str:
    return _RESTORE.format(folder=_quoted(folder))


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder)).replace("%", "%%")  # PostgreSQL replaces %f and %p


def check_exists(archive: Path) -> None:
    """Raises EmbeddedError if the path is not a folder."""
    if not (archive.is_absolute() and str(archive).isprintable()):
        raise EmbeddedError("SSO_WAL_ARCHIVE: must be an absolute path such as /backups/wal")
    if not archive.is_dir():
        raise EmbeddedError(f"SSO_WAL_ARCHIVE: {archive} is not a directory: create it")


def check_writable(archive: Path, account: Account) -> None:
    """Raises EmbeddedError if PostgreSQL could not write to the archive."""
    if os.geteuid() == 0 and not reachable(archive, account):
        raise EmbeddedError(
            f"SSO_WAL_ARCHIVE: the account of PostgreSQL (uid {account.uid}) cannot reach {archive}: "
            "let other users pass through it and the directories above it (chmod o+x)"
        )
    if os.statvfs(archive).f_flag & os.ST_RDONLY:
        raise EmbeddedError(
            f"SSO_WAL_ARCHIVE: the file system of {archive} is read-only for the service: "
            f"if systemd starts it, add ReadWritePaths={archive} to its unit"
        )
    if not os.access(archive, os.W_OK | os.X_OK):
        raise EmbeddedError(f"SSO_WAL_ARCHIVE: this account cannot write to {archive}")


def store_archive(home: Path, archive: Path | None) -> None:
    if archive is None:
        (home / "wal_archive").unlink(missing_ok=True)
        (home / "wal_archive_folder").unlink(missing_ok=True)
        return
    _store_path(home / "wal_archive", archive)


def _store_path(file: Path, path: Path) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(f"{path}\n")
    sync(draft)
    draft.rename(file)
    sync(file.parent)


def _archive_history_files(wal: Path, account: Account) -> None:
    """Marks the history of timelines for archiving. A recovery writes it while archiving is off."""
    for history in wal.glob("*.history"):
        mark = wal / "archive_status" / f"{history.name}.ready"
        if not mark.exists() and not mark.with_suffix(".done").exists():
            mark.touch(0o600)
            if os.geteuid() == 0:
                os.chown(mark, *account)
