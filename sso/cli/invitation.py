"""sso user invite, sso user invitations"""

from functools import partial

import click

from sso.cli.context import CommandFailure, utf8_argument, with_services, write_audit_entry
from sso.cli.output import Format, list_options, print_list
from sso.cli.services import CommandServices
from sso.core.language_names import LANGUAGES, SOURCE

MAX_DAYS = 365


@click.command()
@click.argument("address", callback=utf8_argument)
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, MAX_DAYS),
    default=7,
    show_default=True,
    help="Days for which the link works.",
)
@click.option("--lang", type=click.Choice(LANGUAGES), default=SOURCE, show_default=True, help="Language of the e-mail.")
@click.pass_context
def invite(ctx: click.Context, address: str, days: int, lang: str) -> None:
    """Invite a new user with the e-mail address ADDRESS: print a link, and mail it if SSO_SMTP_URL is set.

    The link works once. It confirms the address, and asks for a nickname and a password. It needs SSO_REGISTRATION to
    be `invite` or `open`.

    \b
    Example:
      sso user invite ann@example.com --days 3 --lang de
    """
    login = _login(address)

    async def work(services: CommandServices) -> tuple[str, bool, bool]:
        if await services.users.get_by_login(login):
            raise CommandFailure(f"{login} already has an account")
        settings = services.settings
        sends_mail = settings.smtp_url is not None
        await write_audit_entry(services, "invitation.create", login, {"days": days, "mailed": sends_mail})
        link = await services.invitations.create(login, days, lang, sends_mail=sends_mail)
        return link, sends_mail, settings.registration == "closed"

    link, is_mailed, is_closed = with_services(ctx, work, with_permissions=False)
    click.echo(link)
    click.echo(f"mailed to {login}" if is_mailed else "not mailed: SSO_SMTP_URL is not set", err=True)
    if is_closed:
        click.echo("warning: the link works after you set SSO_REGISTRATION to invite or open", err=True)


@click.command()
@click.option("--revoke", metavar="ID_OR_ADDRESS", callback=utf8_argument, help="Revoke one, or all of an address.")
@list_options
@click.pass_context
def invitations(ctx: click.Context, revoke: str | None, form: Format | None) -> None:
    """List the invitations that can still be used, or revoke some.

    \b
    Example:
      sso user invitations
      sso user invitations --revoke ann@example.com
    """
    if revoke is not None:
        count = with_services(ctx, partial(_revoke, revoke), with_permissions=False)
        click.echo(f"{count} revoked")
        return
    found = with_services(ctx, lambda services: services.invitations.list(), with_permissions=False)
    print_list(
        form,
        [
            {
                "id": invitation.id,
                "login": invitation.login,
                "created": int(invitation.created.timestamp()),
                "expires": int(invitation.expires.timestamp()),
            }
            for invitation in found
        ],
    )


async def _revoke(id_or_address: str, services: CommandServices) -> int:
    from sso.accounts.model import login_key

    key = login_key(id_or_address)
    listed = await services.invitations.list()
    revoked = [one for one in listed if one.id == id_or_address or login_key(one.login) == key]
    if not revoked:
        raise CommandFailure(f"there is no invitation {id_or_address}")
    for invitation in revoked:
        await write_audit_entry(services, "invitation.delete", invitation.login, {"id": invitation.id})
    return await services.invitations.revoke([invitation.id for invitation in revoked])


def _login(address: str) -> str:
    from sso.accounts.model import stored_login
    from sso.core.mail_address import MAX_ADDRESS_LENGTH, check_mail_address

    try:
        return check_mail_address(stored_login(address[: MAX_ADDRESS_LENGTH + 1]))
    except ValueError as error:
        raise CommandFailure(f"ADDRESS: {error}") from None
