"""sso apply"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure
from sso.cli.document_file import read_document
from sso.cli.echo import echo, echo_json
from sso.cli.impact_format import MAX_LINES, format_apply_report
from sso.cli.output import print_lines
from sso.cli.progress import Progress
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.client import RequestRefused
from sso.state.position import located_text

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Change nothing, and show what would change and for whom.")
@click.option("--override", is_flag=True, help="Apply the document even if assertions of applications fail.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, file: Path, dry_run: bool, override: bool, as_json: bool) -> None:
    """Apply FILE (or - for standard input), a JSON document of desired state.

    The document is applied as a whole or not at all. Records and fields that it does not name stay as they are, and
    applying it again changes nothing. The service may be running; it uses the new state at once.

    With --dry-run, the exit code is 1 if an assertion would fail.

    \b
    Example:
      echo '{"users": [{"login": "ann@example.com", "nick": "Ann"}]}' | sso apply -
      sso apply --dry-run state.json
    """
    source = read_document(file)

    async def apply(records: "ServiceRecords") -> tuple[Fields, dict[str, str]]:
        try:
            with Progress(f"applying {'standard input' if str(file) == '-' else file}") as progress:
                report = await records.state.apply(
                    source.fields,
                    lambda what, done, total: progress.show(f"{what}, {done:,} of {total:,}"),
                    dry_run=dry_run,
                    override=override,
                )
        except RequestRefused as error:
            if error.status == 400:  # the text names the place in the document
                raise CommandFailure(located_text(source.name, source.text, error.text)) from None
            raise
        if not dry_run or as_json:
            return report, {}
        return report, await records.state.logins([user["user_id"] for user in report["users"][:MAX_LINES]])

    report, logins = with_records(ctx, apply, may_create=True, in_process=source.is_large)
    _print(report, logins, dry_run=dry_run, as_json=as_json)
    if dry_run and report["failed_assertions"]:
        ctx.exit(1)


def _print(report: Fields, logins: dict[str, str], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        echo_json(report, indent=True)
        return
    for warning in report["warnings"]:
        echo(f"warning: {warning}", err=True)
    if dry_run:
        print_lines(format_apply_report(report, logins))
    else:
        echo(f"created {report['created']}, changed {report['changed']}, unchanged {report['unchanged']}")
