"""sso why"""

from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, utf8_argument, with_services
from sso.cli.output import print_json, print_lines
from sso.cli.services import CommandServices

if TYPE_CHECKING:
    from sso.gsid.violations import ViolationRecord


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

    async def work(services: CommandServices) -> "ViolationRecord | None":
        from sso.gsid.violations import find_violation

        return await find_violation(services.database, record_id)

    record = with_services(ctx, work, with_permissions=False)
    if record is None:
        raise CommandFailure(f"there is no record {record_id}, or it is older than a week")
    if as_json:
        print_json(record)
    else:
        print_lines(f"{name:<10}{value}" for name, value in lines(record))


def lines(record: "ViolationRecord") -> list[tuple[str, str]]:
    # The client chose the gsid: escape control characters, which could fake lines or move the cursor.
    gsid = record.gsid if record.gsid.isprintable() else ascii(record.gsid)
    return [
        ("when", record.created.isoformat(timespec="seconds")),
        ("gsid", gsid or "none"),
        ("from", record.address),
        ("reason", record.reason),
        *(("expected", value) for value in [record.expected] if value),
        *(("found", value) for value in [record.found] if value),
    ]
