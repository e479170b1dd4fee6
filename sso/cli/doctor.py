"""sso doctor"""

import click

from sso.cli.context import CommandFailure, running_database, settings_of
from sso.doctor import check


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Check the installation and recommend fixes: database, migrations, keys, clock, file modes, addresses.

    A line begins with "ok", with "note" (worth knowing) or with "FAIL"; after any FAIL the exit code is 1.
    """
    settings = settings_of(ctx)
    failed = 0
    with running_database(settings) as dsn:
        for finding in check(settings, dsn):
            mark = "ok  " if finding.good else "note" if finding.warning else "FAIL"
            click.echo(f"{mark}  {finding.name}: {finding.detail}")
            if not finding.good:
                click.echo(f"      {finding.advice}")
                failed += not finding.warning
    if failed:
        raise CommandFailure(f"{failed} check{'s' if failed > 1 else ''} failed")
