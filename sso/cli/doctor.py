"""sso doctor"""

import click

from sso.cli.context import CommandFailure, connected, settings_of
from sso.doctor import check


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Check the installation: database, migrations, keys, clock, file modes, addresses. Says what to do."""
    settings = settings_of(ctx)
    failed = 0
    with connected(settings) as dsn:
        for finding in check(settings, dsn):
            mark = "ok  " if finding.good else "note" if finding.warning else "FAIL"
            click.echo(f"{mark}  {finding.name}: {finding.detail}")
            if not finding.good:
                click.echo(f"      {finding.advice}")
                failed += not finding.warning
    if failed:
        raise CommandFailure(f"{failed} check{'s' if failed > 1 else ''} failed")
