"""sso doctor"""

import click

from sso.cli.context import CommandFailure, running_database, settings_of
from sso.cli.echo import echo, echo_json
from sso.cli.output import print_lines
from sso.doctor import Finding
from sso.doctor.checks import check

COLOURS = {"ok": "green", "note": "yellow", "FAIL": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per check and line.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Check the installation and recommend fixes: database, migrations, keys, clock, file modes, addresses.

    A line begins with "ok", with "note" (worth knowing) or with "FAIL"; after any FAIL the exit code is 1.

    \b
    Example:
      sso doctor
    """
    settings = settings_of(ctx)
    failed = 0
    with running_database(settings) as dsn:
        for finding in check(settings, dsn):
            if as_json:
                echo_json(finding)
            else:
                _print(finding)
            failed += not finding.good and not finding.warning
    if failed:
        raise CommandFailure(f"{failed} check{'s' if failed > 1 else ''} failed")


def _print(finding: Finding) -> None:
    mark = "ok" if finding.good else "note" if finding.warning else "FAIL"
    echo(f"{mark:<4}  ", nl=False, fg=COLOURS[mark])
    print_lines([f"{finding.name}: {finding.detail}"])
    if not finding.good:
        print_lines([f"      {finding.advice}"])
