"""sso migrate"""

import click

from sso.cli.context import migrated_database, settings_of
from sso.cli.data_directory import announce_creation
from sso.cli.echo import echo
from sso.db.migrate import current


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Upgrade the database schema to this version of the program.

    `sso serve` does this when it starts. Use this command to do it beforehand, for example before a rolling update.

    \b
    Example:
      sso migrate
    """
    settings = settings_of(ctx, may_create=True)
    if settings.database_url is None:
        announce_creation(settings)
    with migrated_database(settings, wait=True) as dsn:
        echo(f"the database is at version {current(dsn)}")
