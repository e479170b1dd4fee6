"""sso client approve, sso client refuse, sso client registration-token, sso client registration-tokens"""

import click

from sso.cli.context import utf8_argument
from sso.cli.echo import echo
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records

MAX_USES, MAX_DAYS = 1000, 365
CLIENT_ID = click.argument("client_id", callback=utf8_argument)


@click.command()
@CLIENT_ID
@click.pass_context
def approve(ctx: click.Context, client_id: str) -> None:
    """Approve a client that registered itself. Users can then sign in to it, as to a third party.

    \b
    Example:
      sso client approve r-7ZkW3mWcX1Ue0JtQf8yLRA
      sso client approve https://agent.example.com/client.json
    """
    client = with_records(ctx, lambda records: records.clients.approve(client_id))
    echo(f"{client_id} is approved: {client['name'] or 'without a name'}, which sends users to")
    for uri in client["redirect_uris"]:
        echo(f"  {uri}")


@click.command()
@CLIENT_ID
@click.pass_context
def refuse(ctx: click.Context, client_id: str) -> None:
    """Refuse a client that waits for approval: delete it, or disable it if its id is the address of a document.

    \b
    Example:
      sso client refuse r-7ZkW3mWcX1Ue0JtQf8yLRA
    """
    with_records(ctx, lambda records: records.clients.refuse(client_id))
    echo(f"{client_id} is refused")


@click.command("registration-token")
@click.option("--uses", metavar="N", type=click.IntRange(1, MAX_USES), default=1, show_default=True,
              help="Clients that can be registered with it.")  # fmt: skip
@click.option("--days", metavar="N", type=click.IntRange(1, MAX_DAYS), default=7, show_default=True,
              help="Days for which it works.")  # fmt: skip
@click.pass_context
def registration_token(ctx: click.Context, uses: int, days: int) -> None:
    """Create and print a token with which programs register clients (SSO_CLIENT_REGISTRATION `token` or `approved`).

    Clients that are registered with it need no approval. It is not shown again.

    \b
    Example:
      sso client registration-token --uses 5 --days 1
    """
    echo(with_records(ctx, lambda records: records.clients.add_token(uses, days)))


@click.command("registration-tokens")
@click.option("--revoke", metavar="ID", callback=utf8_argument, help="Revoke this one.")
@list_options
@click.pass_context
def registration_tokens(ctx: click.Context, revoke: str | None, form: Format | None) -> None:
    """List the registration tokens that can still be used, or revoke one.

    \b
    Example:
      sso client registration-tokens
      sso client registration-tokens --revoke 3
    """
    if revoke is not None:
        with_records(ctx, lambda records: records.clients.revoke_token(revoke))
        echo(f"registration token {revoke} is revoked")
        return
    print_list(form, with_records(ctx, lambda records: records.clients.list_tokens()))
