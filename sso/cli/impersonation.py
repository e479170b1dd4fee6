"""sso user impersonate."""

from typing import TYPE_CHECKING

import click

from sso.cli.context import utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.records import with_records

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords

_OPTIONS = {"reason": "--reason", "minutes": "--minutes", "writes": "--writes"}


@click.command()
@click.argument("id_or_login", callback=utf8_argument)
@click.option("--reason", required=True, callback=utf8_argument, help="Why, for the audit trail.")
@click.option("--minutes", type=int, default=15, show_default=True, help="How long the account stays open, at most 30.")
@click.option("--writes", is_flag=True, help="The profile may be changed, and sessions be ended.")
@click.pass_context
def impersonate(ctx: click.Context, id_or_login: str, reason: str, minutes: int, writes: bool) -> None:
    """Print a link that opens the account page of a player as support, once and within 60 seconds.

    The player gets a mail. Nothing can be changed there, unless --writes is given.

    \b
    Example:
      sso user impersonate ann@example.com --reason "ticket 4711"
    """

    async def work(records: "ServiceRecords") -> str:
        user = await records.users.find(id_or_login)
        return await records.users.impersonate(user, reason, minutes=minutes, writes=writes)

    with option_errors(_OPTIONS):
        echo(with_records(ctx, work))
