"""sso user ban, unban and bans."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import Fields

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords

ID_OR_LOGIN = click.argument("id_or_login", callback=utf8_argument)
_OPTIONS = {
    r"scope\.application_id": "--app",
    r"scope\.project_id": "--project",
    "until": "--until",
    "reason": "--reason",
    "note": "--note",
}


def _moment(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Reads Unix seconds, or a date with or without a time, which is in UTC unless it says otherwise."""
    if text is None or (text.isascii() and text.isdecimal()):
        return None if text is None else int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter("expected a date such as 2030-01-31, or Unix seconds") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


@click.command()
@ID_OR_LOGIN
@click.option("--app", "application_id", type=int, metavar="ID", help="Ban the user at this application.")
@click.option("--project", "project_id", metavar="ID", callback=utf8_argument, help="Ban the user in this project.")
@click.option("--until", metavar="TIME", callback=_moment, help="End: a date or Unix seconds (default: for ever).")
@click.option("--reason", default="", callback=utf8_argument, help="What the player is told.")
@click.option("--note", default="", callback=utf8_argument, help="For the staff; the player does not see it.")
@click.pass_context
def ban(
    ctx: click.Context,
    id_or_login: str,
    application_id: int | None,
    project_id: str | None,
    until: int | None,
    reason: str,
    note: str,
) -> None:
    """Ban a user and print the id of the ban. Sessions, tokens, sockets and held polls in the scope end at once.

    \b
    Example:
      sso user ban ann@example.com --app 10 --until 2030-01-31 --reason Cheating
    """
    if application_id is not None and project_id is not None:
        raise click.UsageError("give --app or --project, not both")
    scope: Fields | str = "all"
    if application_id is not None:
        scope = {"application_id": application_id}
    elif project_id is not None:
        scope = {"project_id": project_id}

    async def work(records: "ServiceRecords") -> Fields:
        user = await records.users.find(id_or_login)
        return await records.users.ban(user, scope, until=until, reason=reason, note=note)

    with option_errors(_OPTIONS):
        echo(f"ban {with_records(ctx, work)['id']}")


@click.command()
@ID_OR_LOGIN
@click.argument("ban_id", required=False, callback=utf8_argument)
@click.pass_context
def unban(ctx: click.Context, id_or_login: str, ban_id: str | None) -> None:
    """Lift the ban BAN_ID of a user, or without it all bans.

    \b
    Example:
      sso user unban ann@example.com
    """

    async def work(records: "ServiceRecords") -> list[str]:
        user = await _user(records, id_or_login)
        lifted = [item["id"] for item in await records.users.bans(user) if ban_id in (None, item["id"])]
        for item in lifted:
            await records.users.unban(user, item)
        return lifted

    lifted = with_records(ctx, work)
    if not lifted:
        raise CommandFailure("there is no such ban")
    echo(f"lifted {' '.join(lifted)}")


@click.command()
@ID_OR_LOGIN
@list_options
@click.pass_context
def bans(ctx: click.Context, id_or_login: str, form: Format | None) -> None:
    """List the bans of a user.

    \b
    Example:
      sso user bans ann@example.com --json
    """

    async def work(records: "ServiceRecords") -> Sequence[Fields]:
        return await records.users.bans(await _user(records, id_or_login))

    print_list(form, with_records(ctx, work))


async def _user(records: "ServiceRecords", id_or_login: str) -> Fields:
    """Returns the user. One with this id may be erased, and still have bans."""
    return {"user_id": id_or_login} if id_or_login.isdecimal() else await records.users.find(id_or_login)
