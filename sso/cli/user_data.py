"""sso user delete, restore and export: commands about a person's data, which ``sso user`` lists among its own."""

from typing import TYPE_CHECKING

import click

from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument, with_services, write_audit_entry
from sso.cli.services import CommandServices

if TYPE_CHECKING:
    from datetime import datetime

    from sso.accounts.model import User

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
        asked = with_services(ctx, lambda services: _find(services, id_or_login))
        confirm(f"{'Erase' if now else 'Delete'} {asked.login} (user {asked.user_id})?", yes)

    async def work(services: CommandServices) -> "tuple[User, datetime | None]":
        user = await _find(services, id_or_login)
        if now:
            await _erase(services, user)
            return user, None
        return user, await services.complete.deletion.request(user, None, by="operator", actor=services.actor)

    user, due = with_services(ctx, work)
    if now:
        click.echo(f"{user.login} is erased")
    elif due:
        click.echo(f"{user.login} is closed and will be erased on {due:%Y-%m-%d}")
    else:
        click.echo(f"{user.login} is closed already and will be erased on {user.deletion_due:%Y-%m-%d}")


async def _erase(services: CommandServices, user: "User") -> None:
    complete = services.complete
    if user.deletion_by != "erasing":
        await complete.deletion.request(user, None, by="operator", days=0)
        await complete.deletion.make_due(user.user_id)
    if not await complete.erasure.erase_now(user.user_id, services.actor):
        raise CommandFailure(f"{user.login} is being erased by a worker; try again in a few minutes")


@click.command()
@ID_OR_LOGIN
@click.pass_context
def restore(ctx: click.Context, id_or_login: str) -> None:
    """Keep the account of a user who is going to be deleted. A user who was disabled stays disabled.

    \b
    Example:
      sso user restore ann@example.com
    """

    async def work(services: CommandServices) -> "User":
        user = await _find(services, id_or_login)
        if user.deletion_due is None:
            raise CommandFailure(f"{user.login} is not going to be deleted")
        await write_audit_entry(services, "user.restore", user.user_id, {"deleted": False})
        kept = await services.complete.deletion.restore(user)
        if kept is None:
            raise CommandFailure(f"{user.login} is being erased and can no longer be kept")
        return kept

    user = with_services(ctx, work, with_permissions=False)
    click.echo(f"{user.login} is kept{', and disabled' if user.disabled else ''}")


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
    import orjson

    from sso.personal_data.export import export_user

    async def work(services: CommandServices) -> bytes:
        user = await _find(services, id_or_login)
        document = await export_user(services.database, user.user_id)
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    click.echo(with_services(ctx, work, with_permissions=False), nl=False)


def pending_deletion(user: "User") -> dict[str, str | int]:
    """Returns what `sso user show` tells about the deletion of an account."""
    if user.deletion_due is None:
        return {}
    return {"deletion_due": int(user.deletion_due.timestamp()), "deletion_by": user.deletion_by or ""}


async def _find(services: CommandServices, id_or_login: str) -> "User":
    user = await services.users.find(id_or_login)
    if user is None:
        raise CommandFailure(f"there is no user {id_or_login}")
    return user
