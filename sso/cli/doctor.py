"""sso doctor"""

import click
from msgspec.structs import asdict

from sso.cli.context import CommandFailure, running_database, settings_of
from sso.cli.echo import echo, echo_json
from sso.cli.output import print_lines
from sso.core.findings import Finding, Report
from sso.doctor.checks import check

COLOURS = {"ok": "green", "note": "yellow", "FAIL": "red"}


@click.command()
@click.option("--verbose", is_flag=True, help="Print the checks that passed as well, a line each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per check and line.")
@click.pass_context
def command(ctx: click.Context, verbose: bool, as_json: bool) -> None:
    """Check the installation and recommend fixes: database, migrations, keys, clock, file modes, addresses.

    Failed checks (FAIL) come first, then what is worth knowing (note), then the names of the checks that passed (ok).
    After any FAIL the exit code is 1.

    \b
    Example:
      sso doctor
    """
    settings = settings_of(ctx)
    with running_database(settings) as dsn:
        report = Report(check(settings, dsn))
    if as_json:
        for finding in report.findings:
            echo_json(asdict(finding))
    else:
        _print(report, verbose)
    if report.failed:
        raise CommandFailure(report.conclusion)
    if not as_json:
        echo(report.conclusion)


def _print(report: Report, verbose: bool) -> None:
    for finding in (*report.failed, *report.notes, *(report.passed if verbose else ())):
        _print_finding(finding)
    if report.passed and not verbose:
        _print_line("ok", report.passed_names)


def _print_finding(finding: Finding) -> None:
    _print_line("ok" if finding.good else "note" if finding.warning else "FAIL", f"{finding.name}: {finding.detail}")
    if not finding.good:
        print_lines([f"      {finding.advice}"])


def _print_line(mark: str, text: str) -> None:
    echo(f"{mark:<4}  ", nl=False, fg=COLOURS[mark])
    print_lines([text])
