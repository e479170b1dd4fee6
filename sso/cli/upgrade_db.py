"""sso upgrade-db"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from sso.backup import restore
from sso.backup.archive_reader import open_archive
from sso.backup.upgrade import Upgrade, begin_upgrade, copy_database, find_old_binaries
from sso.cli.context import CommandFailure, settings_of
from sso.cli.echo import echo
from sso.cli.passphrase import NOT_AUTHENTICATED, passphrase_option, read_passphrase, unauthenticated_option
from sso.cli.progress import Progress
from sso.cli.restore import show_postponed
from sso.config import Settings
from sso.db.embedded.wal_archive import stored_archive


@click.command()
@click.option(
    "--old-bin",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Directory with the programs of the old PostgreSQL, if the installed package does not have them.",
)
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Without the old programs: a file of `sso backup`. Changes after that backup are not in the new database.",
)
@passphrase_option
@unauthenticated_option
@click.pass_context
def command(
    ctx: click.Context, old_bin: Path | None, file: Path | None, passphrase_file: Path | None, unauthenticated: bool
) -> None:
    """Upgrade the embedded database to the installed major version of PostgreSQL. Stop the service first.

    The database is copied to a new data directory, so there must be room for both. The old one is kept as
    "data.old-15", with the number of its version; remove it when the service works.

    \b
    Example:
      sso upgrade-db
      sso upgrade-db --old-bin /usr/lib/postgresql/15/bin
      sso upgrade-db --from /backups/sso-2026-11-15.backup --passphrase-file /etc/sso/backup-passphrase
    """
    if old_bin and file:
        raise click.UsageError("give either --old-bin or --from")
    settings = settings_of(ctx)
    if settings.database_url is not None:
        raise CommandFailure("upgrade-db is for the embedded PostgreSQL: upgrade the server of SSO_DATABASE_URL itself")
    with begin_upgrade(settings.data_dir) as upgrade:
        if upgrade is None:
            echo("nothing to do: the database is of the installed major version of PostgreSQL")
            return
        echo(
            f"upgrading {upgrade.home / 'data'} from PostgreSQL {upgrade.old_major} to {upgrade.binaries.version}",
            err=True,
        )
        if file:
            read = partial(read_passphrase, passphrase_file, confirm=False)
            _from_backup(settings, upgrade, file, read, unauthenticated)
        else:
            _from_old_server(upgrade, old_bin)
    echo(f"upgraded; the old database is kept in {upgrade.kept}")
    if stored_archive(upgrade.home):
        echo("make a new base backup when the service runs: the WAL archive begins anew", err=True)


def _from_old_server(upgrade: Upgrade, old_bin: Path | None) -> None:
    bin_directory = find_old_binaries(upgrade, old_bin)
    with (
        upgrade.new_server() as new_dsn,
        upgrade.old_server(bin_directory) as old_dsn,
        Progress("copying the database") as progress,
    ):
        copy_database(old_dsn, new_dsn, progress.bytes)


def _from_backup(
    settings: Settings, upgrade: Upgrade, file: Path, read: Callable[[], str], unauthenticated: bool
) -> None:
    with (
        Progress("checking the backup") as checking,
        open_archive(file, read, checking.bytes, unauthenticated=unauthenticated) as archive,
    ):
        checking.done()
        if not archive.is_authenticated:
            echo(NOT_AUTHENTICATED, err=True)
        restore.check_schema(archive.manifest)
        secrets = archive.secrets if archive.manifest.has_keys else None
        restore.check_keys(settings, secrets)
        echo(f"the backup is of {archive.manifest.created}; later changes are lost", err=True)
        with upgrade.new_server() as new_dsn, Progress("restoring the database") as restoring:
            postponed = restore.restore_database(new_dsn, archive, restoring.bytes)
            if secrets is not None:
                restore.restore_keys(settings, secrets)
        show_postponed(postponed)
