"""``sso restore --base``: restores a base backup, and replays the archived WAL up to a moment."""

import datetime
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sso.backup import BackupError, restore
from sso.backup.base_backup_reader import BaseBackup, first_segment
from sso.backup.erasure_times import PostponedErasures, moment_of
from sso.backup.timelines import check_complete, choose_timelines
from sso.config import Settings
from sso.db.embedded.binaries import find_binaries
from sso.db.embedded.files import Account, EmbeddedError, make_directory, postgres_account, sync
from sso.db.embedded.paths import postgres_directory
from sso.db.embedded.start import SETTINGS
from sso.db.embedded.temporary_server import TemporaryServer, temporary_server, unused
from sso.db.embedded.wal_archive import archive_folder, restore_command
from sso.db.errors import DatabaseError
from sso.db.standalone import fetch_value

PORT = 5433
POLL_S = 0.2
TOO_EARLY = "recovery ended before configured recovery target was reached"
REPLAYED = "SELECT to_char(pg_last_xact_replay_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') || '+00'"


class Recovery(Struct, frozen=True):
    last_change: str | None  # the time of the last transaction after the base backup, None if there was none
    missing_keys: list[str]  # ids of master keys without which some secrets cannot be decrypted
    postponed: PostponedErasures


class ArchivedWal(Struct, frozen=True):
    """The archived WAL of the backup's database."""

    folder: Path
    timelines: list[int]  # to follow, from that of the base backup to the target


def find_wal(
    backup: BaseBackup, archive: Path | None, until: datetime.datetime | None, timeline: int | None
) -> ArchivedWal | None:
    """Returns what to replay. Raises BackupError if segments are missing, or if a timeline must be chosen."""
    if archive is None:
        for option, value in (("--until", until), ("--timeline", timeline)):
            if value is not None:
                raise BackupError(f"{option} needs the WAL archive: set SSO_WAL_ARCHIVE")
        return None
    if until is not None and until < datetime.datetime.fromisoformat(backup.manifest.created):
        raise BackupError(f"the base backup was made at {backup.manifest.created}, after --until: use an older one")
    folder = archive_folder(archive, backup.data)
    if not folder.is_dir():
        raise BackupError(f"SSO_WAL_ARCHIVE: {folder}, the archive of this database, does not exist")
    first = first_segment(backup.folder)
    timelines = choose_timelines(folder, first, until, timeline)
    if until is None:  # with a moment, PostgreSQL itself reports that it cannot get there
        check_complete(folder, backup.data / "pg_wal", first, timelines)
    return ArchivedWal(folder, timelines)


def restore_base(
    settings: Settings,
    backup: BaseBackup,
    wal: ArchivedWal | None,
    until: datetime.datetime | None,
    copying: Callable[[int, int], None],
    replaying: Callable[[str], None],
) -> Recovery:
    """Restores into a data directory without a database. Writes the keys just before the database gets its name."""
    secrets = backup.secrets if backup.manifest.has_keys else None
    home = postgres_directory(settings.data_dir)
    data, new = home / "data", home / "data.restored"
    with unused(home) as running:
        if data.exists():
            raise BackupError(f"{data} exists: restore into an empty data directory")
        account = postgres_account(home)
        binaries = find_binaries(account)
        if backup.manifest.postgres.partition(".")[0] != binaries.major:
            raise BackupError(
                f"the base backup is of PostgreSQL {backup.manifest.postgres}, and the installed one is "
                f"{binaries.version}: restore it with the version of this program that made it, then upgrade"
            )
        if new.exists():
            shutil.rmtree(new)  # left by an interrupted restore
        make_directory(new, 0o700, account)
        try:
            _copy(backup, new, copying)
            (new / "recovery.signal").touch(0o600)
            _give_to(new, account)
            options = SETTINGS | _recovery_settings(wal, until)
            with temporary_server(binaries.bin, home, new, account, running, PORT, options) as server:
                last_change = _wait_for_promotion(server, replaying)
                moment = until or moment_of(last_change or backup.manifest.created)
                postponed = restore.prepare_restored(server.dsn, moment)
                keys = restore.keys_of_recovered(settings, secrets, server.dsn)
            if secrets is not None:
                restore.restore_keys(settings, replace(secrets, master_keys=keys.key_texts))
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        os.sync()
        new.rename(data)
        sync(home)
    return Recovery(last_change, keys.missing, postponed)


def _copy(backup: BaseBackup, target: Path, progress: Callable[[int, int], None]) -> None:
    try:
        backup.copy_data(target, progress)
    except OSError as error:
        raise BackupError(f"cannot copy the base backup: {error.strerror}: {error.filename}") from None


def _recovery_settings(wal: ArchivedWal | None, until: datetime.datetime | None) -> dict[str, str]:
    settings = {
        "archive_mode": "off",
        "wal_keep_size": "1TB",  # what this server writes is archived by the service, from its new timeline
        "restore_command": restore_command(wal.folder) if wal else "false",
        "recovery_target_action": "promote",
        "recovery_target_timeline": str(wal.timelines[-1]) if wal and len(wal.timelines) > 1 else "current",
    }
    return settings | ({"recovery_target_time": until.isoformat()} if until else {})


def _wait_for_promotion(server: TemporaryServer, replaying: Callable[[str], None]) -> str | None:
    try:
        while True:
            server.check()
            try:
                recovering = fetch_value(server.dsn, "SELECT pg_is_in_recovery()")
                replayed: str | None = fetch_value(server.dsn, REPLAYED)
            except DatabaseError:  # it does not accept connections yet
                recovering, replayed = True, None
            if not recovering:
                return replayed
            replaying(replayed or "the base backup")
            time.sleep(POLL_S)
    except EmbeddedError as error:
        if TOO_EARLY in str(error):
            raise BackupError(
                "the archive ends before the moment of --until: "
                "choose an earlier one, or leave --until out to restore everything"
            ) from None
        raise BackupError(f"the recovery failed: {error}") from None


def _give_to(folder: Path, account: Account) -> None:
    if os.geteuid() == 0:
        for directory, _, files in os.walk(folder):
            for path in (Path(directory), *(Path(directory, file) for file in files)):
                os.chown(path, *account)
