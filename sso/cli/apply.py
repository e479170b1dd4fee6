"""sso apply"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, with_services
from sso.cli.impact_format import MAX_LINES, format_apply_report
from sso.cli.output import print_json, print_lines
from sso.cli.progress import Progress
from sso.cli.services import CommandServices
from sso.db.statement import Statement
from sso.state.document import Document, DocumentError, parse
from sso.upstream.provider_store import TOPIC as PROVIDERS_TOPIC
from sso.web.body import InvalidBody, parse_body

if TYPE_CHECKING:
    from sso.state.apply import ApplyReport

_LOGINS = Statement("SELECT user_id, login FROM users WHERE user_id = ANY(CAST(:ids AS text[]))")
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


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
    document = _read(file)

    async def apply(services: CommandServices) -> "tuple[ApplyReport, dict[str, str]]":
        from sso.perm.changes.writer import WriteMode

        mode = WriteMode(dry_run, override, services.actor)
        try:
            with Progress(f"applying {'standard input' if str(file) == '-' else file}") as progress:
                report = await services.applier.run(
                    document, mode, lambda what, done, total: progress.show(f"{what}, {done:,} of {total:,}")
                )
        except DocumentError as error:
            raise CommandFailure(f"{file}: {error}") from None
        if document.identity_providers and not dry_run:
            services.bus.publish(PROVIDERS_TOPIC)
        return report, await _logins(services, report) if dry_run and not as_json else {}

    report, logins = with_services(ctx, apply, may_create=True)
    _print(report, logins, dry_run=dry_run, as_json=as_json)
    if dry_run and report.impact.failed_assertions:
        ctx.exit(1)


def _read(file: Path) -> Document:
    try:
        raw = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1) if str(file) == "-" else file.read_bytes()
        return parse(
            parse_body(raw, "application/json", max_bytes=MAX_DOCUMENT_BYTES, max_values=MAX_DOCUMENT_BYTES).fields
        )
    except OSError as error:
        raise CommandFailure(f"cannot read {file}: {error.strerror}") from None
    except (InvalidBody, DocumentError) as error:
        raise CommandFailure(f"{file}: {error}") from None


async def _logins(services: CommandServices, report: "ApplyReport") -> dict[str, str]:
    ids = [change.user_id for change in report.impact.changes[:MAX_LINES]]
    return {row["user_id"]: row["login"] for row in await services.database.rows(_LOGINS, ids=ids)}


def _print(report: "ApplyReport", logins: dict[str, str], *, dry_run: bool, as_json: bool) -> None:
    counts = report.counts
    if as_json:
        numbers = {"created": counts.created, "changed": counts.changed, "unchanged": counts.unchanged}
        print_json(report.json if dry_run else {**numbers, "warnings": list(counts.warnings)})
        return
    for warning in counts.warnings:
        click.echo(f"warning: {warning}", err=True)
    if dry_run:
        print_lines(format_apply_report(report, logins))
    else:
        click.echo(f"created {counts.created}, changed {counts.changed}, unchanged {counts.unchanged}")
