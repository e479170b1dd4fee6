"""sso migrate"""

import click

from sso.cli.context import migrated_database, settings_of
from sso.db.migrate import HEAD


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Upgrade the database schema to this version of the program.

    `sso serve` does this when it starts. Use this command to do it beforehand, for example before a rolling update.

    \b
    Example:
      sso migrate
    """
    with migrated_database(settings_of(ctx), wait=True):
        click.echo(f"the database is at version {HEAD}")
