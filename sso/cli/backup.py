"""sso backup"""

from pathlib import Path

import click

from sso.backup.create import create_backup
from sso.cli.context import CommandFailure, running_database, settings_of
from sso.cli.passphrase import passphrase_option, read_passphrase
from sso.cli.progress import Progress


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@passphrase_option
@click.option("--no-keys", is_flag=True, help="Leave the master key out. Keep it elsewhere: secrets need it.")
@click.pass_context
def command(ctx: click.Context, file: Path, passphrase_file: Path | None, no_keys: bool) -> None:
    """Write the database and the keys to FILE, while the service runs.

    The backup is one consistent snapshot. The keys in it are encrypted with a passphrase, which is asked for at the
    terminal or read from a file. Restore it with `sso restore`.

    \b
    Example:
      sso backup /backups/sso-$(date +%F).backup --passphrase-file /etc/sso/backup-passphrase
    """
    if file.exists():
        raise CommandFailure(f"{file} exists: choose another name")
    settings = settings_of(ctx)
    passphrase = None if no_keys else read_passphrase(passphrase_file, confirm=True)
    progress = Progress("dumping the database")
    with running_database(settings) as dsn:
        manifest = create_backup(settings, dsn, file, passphrase, progress.bytes)
    progress.done()
    keys = "with" if manifest.has_keys else "WITHOUT"
    click.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB, schema {manifest.schema}, {keys} keys")
