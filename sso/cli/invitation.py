"""sso user invite, sso user invitations"""

from functools import partial
from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records
from sso.core.language_names import LANGUAGES, SOURCE

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


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

    invitation = with_records(ctx, lambda records: records.invitations.create(login, days, lang))
    echo(invitation["link"])
    echo(f"mailed to {login}" if invitation["mailed"] else "not mailed: SSO_SMTP_URL is not set", err=True)


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
        count = with_records(ctx, partial(_revoke, revoke))
        echo(f"{count} revoked")
        return
    print_list(form, with_records(ctx, lambda records: records.invitations.list()))


async def _revoke(id_or_address: str, records: "ServiceRecords") -> int:
    from sso.accounts.model import login_key

    key = login_key(id_or_address)
    listed = await records.invitations.list()
    revoked = [item for item in listed if item["id"] == id_or_address or login_key(item["login"]) == key]
    if not revoked:
        raise CommandFailure(f"there is no invitation {id_or_address}")
    return await records.invitations.revoke(revoked)


def _login(address: str) -> str:
    from sso.accounts.model import stored_login
    from sso.core.mail_address import MAX_ADDRESS_LENGTH, check_mail_address

    try:
        return check_mail_address(stored_login(address[: MAX_ADDRESS_LENGTH + 1]))
    except ValueError as error:
        raise CommandFailure(f"ADDRESS: {error}") from None
