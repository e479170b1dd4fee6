"""sso user delete, restore and export: commands about a person's data, which ``sso user`` lists among its own."""

from typing import TYPE_CHECKING

import click

from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo, echo_json
from sso.cli.records import with_records
from sso.cli.records.types import Fields

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


ID_OR_LOGIN = click.argument("id_or_login", callback=utf8_argument)


@click.command()
@ID_OR_LOGIN
@click.option("--now", is_flag=True, help="Erase the account at once. It cannot be restored.")
@yes_option
@click.pass_context
def delete(ctx: click.Context, id_or_login: str, now: bool, yes: bool) -> None:
    """Delete a user: the account is closed at once, and erased after SSO_DELETION_DAYS or, with --now, immediately.

    All sessions and tokens end. The user gets a mail with the date; `sso user restore` keeps the account. The last
    administrator of the service or of a project cannot be deleted.

    \b
    Example:
      sso user delete ann@example.com
      sso user delete ann@example.com --now --yes
    """
    if not yes:
        asked = with_records(ctx, lambda records: records.users.find(id_or_login))
        confirm(f"{'Erase' if now else 'Delete'} {asked['login']} (user {asked['user_id']})?", yes)

    async def erase(records: "ServiceRecords") -> str:
        user = await records.users.find(id_or_login)
        await records.users.erase(user)
        return f"{user['login']} is erased"

    async def close(records: "ServiceRecords") -> str:
        user = await records.users.find(id_or_login)
        day = await records.users.delete(user)
        already = " already" if user.get("deletion_due") else ""
        return f"{user['login']} is closed{already} and will be erased on {day}"

    echo(with_records(ctx, erase if now else close))


@click.command()
@ID_OR_LOGIN
@click.pass_context
def restore(ctx: click.Context, id_or_login: str) -> None:
    """Keep the account of a user who is going to be deleted. A user who was disabled stays disabled.

    \b
    Example:
      sso user restore ann@example.com
    """

    async def work(records: "ServiceRecords") -> Fields:
        user = await records.users.find(id_or_login)
        if not user.get("deletion_due"):
            raise CommandFailure(f"{user['login']} is not going to be deleted")
        return await records.users.restore(user)

    user = with_records(ctx, work)
    echo(f"{user['login']} is kept{', and disabled' if user['disabled'] else ''}")


@click.command()
@ID_OR_LOGIN
@click.pass_context
def export(ctx: click.Context, id_or_login: str) -> None:
    """Print everything that is stored about a user as JSON, without passwords and other secrets.

    Users download the same document from their account page.

    \b
    Example:
      sso user export ann@example.com > ann.json
    """

    async def work(records: "ServiceRecords") -> Fields:
        return await records.users.export(await records.users.find(id_or_login))

    document = with_records(ctx, work)
    echo_json(document, indent=True)
