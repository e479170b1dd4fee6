"""sso restore"""

import datetime
from functools import partial
from pathlib import Path

import click

from sso.backup import restore
from sso.backup.archive_reader import open_archive
from sso.backup.base_backup_reader import open_base_backup
from sso.backup.erasure_times import PostponedErasures
from sso.backup.point_in_time import find_wal, restore_base
from sso.cli.context import CommandFailure, running_database, settings_of
from sso.cli.data_directory import announce_creation
from sso.cli.echo import echo
from sso.cli.passphrase import NOT_AUTHENTICATED, passphrase_option, read_passphrase, unauthenticated_option
from sso.cli.progress import Progress
from sso.cli.types import past_time
from sso.config import Settings
from sso.db.migrate import HEAD

NO_KEYS = "the backup has no keys: bring back the master key before you start the service"


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option(
    "--base",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Instead of FILE: restore this base backup, and replay the archive of SSO_WAL_ARCHIVE.",
)
@click.option(
    "--until",
    type=past_time,
    metavar="TIME",
    help="With --base: stop at this moment, such as '2026-11-15 12:00:00+00'.",
)
@click.option(
    "--timeline",
    type=click.IntRange(1),
    metavar="N",
    help="With --base: follow this timeline of the archive instead of the newest one.",
)
@passphrase_option
@unauthenticated_option
@click.pass_context
def command(
    ctx: click.Context,
    file: Path | None,
    folder: Path | None,
    until: datetime.datetime | None,
    timeline: int | None,
    passphrase_file: Path | None,
    unauthenticated: bool,
) -> None:
    """Restore a backup into an empty data directory or an empty database.

    Everything that was used or revoked after the backup is as it was before: sessions and tokens that ended since then
    are valid again. If that matters, rotate the signing key and sign users out.

    \b
    Example:
      SSO_DATA_DIR=/var/lib/sso-restored sso restore /backups/sso-2026-11-15.backup
      SSO_DATA_DIR=/var/lib/sso-restored SSO_WAL_ARCHIVE=/backups/wal sso restore --base /backups/base-2026-11-15 \\
          --until '2026-11-15 12:00:00+00'
    """
    if (file is None) == (folder is None):
        raise click.UsageError("give either FILE or --base FOLDER")
    if (until or timeline) and not folder:
        raise click.UsageError("--until and --timeline need --base FOLDER: a file has one moment only")
    settings = settings_of(ctx, may_create=True)
    if file:
        _restore_file(settings, file, passphrase_file, unauthenticated)
    elif folder:
        _restore_base(settings, folder, until, timeline, passphrase_file, unauthenticated)


def _restore_file(settings: Settings, file: Path, passphrase_file: Path | None, unauthenticated: bool) -> None:
    read = partial(read_passphrase, passphrase_file, confirm=False)
    with (
        Progress("checking the backup") as checking,
        open_archive(file, read, checking.bytes, unauthenticated=unauthenticated) as archive,
    ):
        checking.done()
        if not archive.is_authenticated:
            echo(NOT_AUTHENTICATED, err=True)
        restore.check_schema(archive.manifest)
        has_keys, secrets = archive.manifest.has_keys, archive.secrets
        restore.check_keys(settings, secrets)
        target = "SSO_DATABASE_URL" if settings.database_url else settings.data_dir.resolve()
        echo(f"restoring into {target}", err=True)
        if settings.database_url is None:
            announce_creation(settings)
        with running_database(settings) as dsn:
            restore.check_empty(dsn)
            with Progress("restoring the database") as restoring:
                postponed = restore.restore_database(dsn, archive, restoring.bytes)
        if secrets is not None and has_keys:
            restore.restore_keys(settings, secrets)
    echo(f"restored the backup of {archive.manifest.created}; the database is at schema {HEAD}")
    show_postponed(postponed)
    if not has_keys:
        echo(NO_KEYS, err=True)


def show_postponed(postponed: PostponedErasures) -> None:
    if postponed:
        echo(
            f"erasures are postponed by the time since the backup: {postponed.accounts} closed accounts, "
            f"{postponed.guests} guests, {postponed.merged_users} merged users, "
            f"{postponed.clients} clients that registered themselves",
            err=True,
        )


def _restore_base(
    settings: Settings,
    folder: Path,
    until: datetime.datetime | None,
    timeline: int | None,
    passphrase_file: Path | None,
    unauthenticated: bool,
) -> None:
    if settings.database_url is not None:
        raise CommandFailure("--base is for the embedded PostgreSQL: unset SSO_DATABASE_URL")
    read = partial(read_passphrase, passphrase_file, confirm=False)
    backup = open_base_backup(folder, read, unauthenticated=unauthenticated)
    if not backup.is_authenticated:
        echo(NOT_AUTHENTICATED, err=True)
    wal = find_wal(backup, settings.wal_archive, until, timeline)
    path = settings.data_dir.resolve()
    echo(f"restoring into {path}, with WAL from {wal.folder if wal else 'the base backup only'}", err=True)
    announce_creation(settings)
    with Progress("copying the base backup") as copying, Progress("replaying changes") as replaying:
        recovery = restore_base(settings, backup, wal, until, copying.bytes, replaying.show)
    moment = until.isoformat(sep=" ") if until else "the end of the archive" if wal else "the end of the base backup"
    echo(f"restored to {moment}; the last change is of {recovery.last_change or backup.manifest.created}")
    show_postponed(recovery.postponed)
    for name in recovery.missing_keys:
        echo(f"some secrets need the master key {name}, which is missing: add it before the service starts", err=True)
    echo("make a new base backup when the service runs: the archive continues from here", err=True)
    if not backup.manifest.has_keys:
        echo(NO_KEYS, err=True)
