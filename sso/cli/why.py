"""sso why"""

from datetime import datetime

import click

from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo_json
from sso.cli.output import print_lines
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.core.printable import printable


@click.command()
@click.argument("record_id", metavar="ID", callback=utf8_argument)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, record_id: str, as_json: bool) -> None:
    """Show why a request about a game session was refused.

    ID is the value of `error` in the client's 403 response. The record shows which check failed, with the expected and
    the actual value (for secrets and keys only the beginning of a digest). Records are kept for a week.

    \b
    Example:
      sso why 2de8a38444be1e27
    """

    record = with_records(ctx, lambda records: records.violations.find(record_id))
    if record is None:
        raise CommandFailure(f"there is no record {record_id}, or it is older than a week")
    if as_json:
        echo_json(record, indent=True)
    else:
        print_lines(f"{name:<10}{value}" for name, value in lines(record))


def lines(record: Fields) -> list[tuple[str, str]]:
    """The gsid is missing if the caller may not terminate game sessions. The client chose it and other values, which
    must not fake a line."""
    fields = [
        ("when", datetime.fromisoformat(record["created"]).isoformat(timespec="seconds")),
        *(("gsid", value or "none") for value in [record.get("gsid")] if value is not None),
        ("from", record["address"]),
        ("reason", record["reason"]),
        *(("expected", value) for value in [record["expected"]] if value),
        *(("found", value) for value in [record["found"]] if value),
    ]
    return [(name, printable(value)) for name, value in fields]
