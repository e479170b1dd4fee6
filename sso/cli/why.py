"""sso why"""

import click

from sso.cli.context import CommandFailure, text, with_services
from sso.gsid.violations import ViolationRecord
from sso.services import Services


@click.command()
@click.argument("record_id", metavar="ID", callback=text)
@click.pass_context
def command(ctx: click.Context, record_id: str) -> None:
    """Tell why a request about a game session was refused.

    ID is what the client got as `error` of a 403. It says which binding failed, and both values; of secrets and keys
    only the beginning of a digest. Records are kept for a week.
    """

    async def work(services: Services) -> ViolationRecord | None:
        return await services.game.violations.find(record_id)

    record = with_services(ctx, work)
    if record is None:
        raise CommandFailure(f"there is no record {record_id}, or it is older than a week")
    for name, value in lines(record):
        click.echo(f"{name:<10}{value}")


def lines(record: ViolationRecord) -> list[tuple[str, str]]:
    # In the place of a gsid anything may have been sent: it must not write lines of its own, nor move the cursor.
    gsid = record.gsid if record.gsid.isprintable() else ascii(record.gsid)
    return [
        ("when", record.created.isoformat(timespec="seconds")),
        ("gsid", gsid or "none"),
        ("from", record.address),
        ("reason", record.reason),
        *(("expected", value) for value in [record.expected] if value),
        *(("found", value) for value in [record.found] if value),
    ]
