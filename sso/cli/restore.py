"""sso restore"""

from pathlib import Path

import click

from sso.backup import restore
from sso.backup.archive import open_archive
from sso.cli.context import running_database, settings_of
from sso.cli.passphrase import passphrase_option, read_passphrase
from sso.cli.progress import Progress
from sso.db.migrate import HEAD


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@passphrase_option
@click.pass_context
def command(ctx: click.Context, file: Path, passphrase_file: Path | None) -> None:
    """Restore a backup into an empty data directory or an empty database.

    Everything that was used or revoked after the backup is as it was before: sessions and tokens that ended since then
    are valid again. If that matters, rotate the signing key and sign users out.

    \b
    Example:
      SSO_DATA_DIR=/var/lib/sso-restored sso restore /backups/sso-2026-11-15.backup
    """
    settings = settings_of(ctx)
    checking, restoring = Progress("checking the backup"), Progress("restoring the database")
    with open_archive(file, checking.bytes) as archive:
        checking.done()
        restore.check_archive(archive)
        has_keys = archive.manifest.has_keys
        secrets = archive.secrets(read_passphrase(passphrase_file, confirm=False)) if has_keys else None
        restore.check_keys(settings, secrets)
        click.echo(f"restoring into {'SSO_DATABASE_URL' if settings.database_url else settings.data_dir}", err=True)
        with running_database(settings) as dsn:
            restore.check_empty(dsn)
            restore.restore_database(dsn, archive, restoring.bytes)
        restoring.done()
        if secrets is not None:
            restore.restore_keys(settings, secrets)
    click.echo(f"restored the backup of {archive.manifest.created}; the database is at schema {HEAD}")
    if not has_keys:
        click.echo("the backup has no keys: bring back the master key before you start the service", err=True)
