"""sso backup"""

from pathlib import Path

import click

from sso.backup.base_backup import create_base_backup
from sso.backup.base_backup_reader import first_segment
from sso.backup.create import create_backup
from sso.cli.context import CommandFailure, running_database, settings_of
from sso.cli.echo import echo
from sso.cli.passphrase import passphrase_option, read_passphrase
from sso.cli.progress import Progress
from sso.config import Settings
from sso.keys.shared_settings import require_shared_key


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--base",
    "folder",
    type=click.Path(path_type=Path),
    help="Instead of FILE: write a base backup for point-in-time recovery to this folder.",
)
@passphrase_option
@click.option("--no-keys", is_flag=True, help="Leave the master key out. Keep it elsewhere: secrets need it.")
@click.option("--encrypt", is_flag=True, help="Encrypt the database with the passphrase as well.")
@click.pass_context
def command(
    ctx: click.Context,
    file: Path | None,
    folder: Path | None,
    passphrase_file: Path | None,
    no_keys: bool,
    encrypt: bool,
) -> None:
    """Write the database and the keys to FILE, while the service runs.

    The backup is one consistent snapshot. A passphrase, which is asked for at the terminal or read from a file,
    encrypts the keys in it and authenticates all of it: `sso restore` refuses a backup that was changed. With --encrypt
    it encrypts the database too.

    With --base, the files of the embedded PostgreSQL are copied to a folder. Together with the archive of
    SSO_WAL_ARCHIVE they can be restored to any later moment.

    \b
    Example:
      sso backup /backups/sso-$(date +%F).backup --encrypt --passphrase-file /etc/sso/backup-passphrase
      sso backup --base /backups/base-$(date +%F) --passphrase-file /etc/sso/backup-passphrase
    """
    target = file or folder
    if target is None or (file and folder):
        raise click.UsageError("give either FILE or --base FOLDER")
    if folder and encrypt:
        raise click.UsageError("--encrypt is for FILE: keep a base backup on an encrypted disk")
    if target.exists():
        raise CommandFailure(f"{target} exists: choose another name")
    settings = settings_of(ctx)
    if folder and settings.database_url is not None:
        raise CommandFailure("--base is for the embedded PostgreSQL: use pg_basebackup with SSO_DATABASE_URL")
    if not no_keys:
        require_shared_key(settings)
    without_passphrase = no_keys and not encrypt and passphrase_file is None
    passphrase = None if without_passphrase else read_passphrase(passphrase_file, confirm=True)
    if file:
        _write_file(settings, file, passphrase, with_keys=not no_keys, encrypted=encrypt)
    else:
        _write_base(settings, target, passphrase, with_keys=not no_keys)
    if passphrase is None:
        echo("no passphrase authenticates this backup: restoring it needs --unauthenticated", err=True)


def _write_file(settings: Settings, file: Path, passphrase: str | None, *, with_keys: bool, encrypted: bool) -> None:
    with running_database(settings) as dsn, Progress("dumping the database") as progress:
        manifest = create_backup(
            settings, dsn, file, passphrase, progress.bytes, with_keys=with_keys, encrypted=encrypted
        )
    keys = "with" if manifest.has_keys else "WITHOUT"
    state = "encrypted" if encrypted else "not encrypted"
    echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB, {state}, schema {manifest.schema}, {keys} keys")


def _write_base(settings: Settings, folder: Path, passphrase: str | None, *, with_keys: bool) -> None:
    with running_database(settings) as dsn, Progress("copying the database") as progress:
        manifest = create_base_backup(settings, dsn, folder, passphrase, progress.bytes, with_keys=with_keys)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    keys = "with" if manifest.has_keys else "WITHOUT"
    segment = first_segment(folder)
    echo(f"{folder}: {size / 1e6:.1f} MB, PostgreSQL {manifest.postgres}, {keys} keys, WAL from {segment} on")
    if settings.wal_archive is None:
        echo("SSO_WAL_ARCHIVE is not set: it can be restored to this moment only, not to later ones", err=True)
