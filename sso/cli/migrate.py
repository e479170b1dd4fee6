"""sso migrate"""

import click

from sso.cli.context import database, settings_of
from sso.db.migrate import HEAD


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Bring the database up to this program's version.

    `sso serve` does this by itself; use this verb to do it beforehand, for instance before a rolling update.
    """
    with database(settings_of(ctx)):
        click.echo(f"the database is at version {HEAD}")
