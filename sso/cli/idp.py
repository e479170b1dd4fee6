"""sso idp …"""

from typing import Any

import click

from sso.cli.command_groups import Subcommands
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.cli.standard_input import read_line

_OPTIONS = {
    "id": "ID",
    "client_id": "--client-id",
    "client_secret": "--client-secret-stdin",
    "scopes": "--scope",
    "claims": "--claim",
}

FLAGS = ("trusted_email", "trusted_second_factor", "keep_tokens", "create_users", "disabled")
EITHER = ("trusted_email",)  # flags whose default depends on the kind
KINDS = ("oidc", "oauth2", "steam", "steam_ticket", "google_play", "game_center", "oidc_ticket")
PROVIDER_ID = click.argument("provider_id", metavar="ID")


@click.group(cls=Subcommands)
def command() -> None:
    """Manage identity providers: other services with which players can sign in.

    \b
    Example:
      sso idp add steam --kind steam
      sso idp list
    """


@command.command()
@PROVIDER_ID
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    required=True,
    help="oidc: OpenID Connect; oauth2: OAuth 2.0 with a userinfo address; steam: Steam. For tickets of games: "
    "steam_ticket, google_play, game_center, and oidc_ticket for ID tokens.",
)
@click.option("--name", help='Name on the button "Continue with NAME" (default: the id).')
@click.option("--issuer", help="Issuer of an OpenID provider, exactly as in its discovery document.")
@click.option(
    "--client-id",
    help="Id that the provider has given to this service; for tickets: the App ID at Steam, the client id of the game "
    "server at Google, the bundle id, or the audience of ID tokens.",
)
@click.option("--client-secret-stdin", is_flag=True, help="Read the client secret from standard input.")
@click.option("--scope", "scopes", multiple=True, help="Scope to request (oidc: openid, email and profile by default).")
@click.option("--authorization-url", help="Authorization address (oauth2).")
@click.option("--token-url", help="Token address (oauth2).")
@click.option("--userinfo-url", help="Address that returns the player's data as JSON (oauth2).")
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="NAME=MEMBER",
    help="Member of the userinfo response with the subject, name, email or email_verified (oauth2).",
)
@click.option("--position", type=click.IntRange(0), help="Place of the button; the lowest comes first (default: 0).")
@click.option(
    "--trusted-email/--no-trusted-email",
    default=None,
    help="Whether addresses that the provider calls verified need no other check (default: yes for oidc, and for "
    "oauth2 with a claim for email_verified).",
)
@click.option(
    "--trusted-second-factor", is_flag=True, help="Do not ask for the account's second factor after this sign-in."
)
@click.option("--keep-tokens", is_flag=True, help="Store the provider's tokens, encrypted (default: discard them).")
@click.option("--create-users", is_flag=True, help="Create a user for each store account that is not linked (tickets).")
@click.option("--jwks-uri", help="Address of the keys (oidc_ticket; default: that of the discovery document).")
@click.option("--max-age", type=click.IntRange(1), help="Greatest age of a ticket in seconds (default: 300).")
@click.option("--ticket-identity", help="Identity that the game passes to GetAuthTicketForWebApi (steam_ticket).")
@click.option(
    "--certificates",
    type=click.File(),
    help="File with the issuers of Apple's certificate in PEM (game_center; default: any that Apple's host sends).",
)
@click.pass_context
def add(ctx: click.Context, /, provider_id: str, **options: Any) -> None:
    """Add an identity provider. Prints the callback address to register there, unless it is for tickets of games.

    \b
    Example:
      sso idp add google --kind oidc --issuer https://accounts.google.com --client-id 1234 --client-secret-stdin
      sso idp add steam --kind steam
      sso idp add steam-game --kind steam_ticket --client-id 480 --client-secret-stdin --create-users
    """
    record = _record(provider_id, options)
    with option_errors(_OPTIONS):
        callback = with_records(ctx, lambda records: records.providers.add(record))
    echo(f"callback {callback}" if callback else f"{provider_id} is added")


@command.command("list")
@list_options
@click.pass_context
def list_providers(ctx: click.Context, form: Format | None) -> None:
    """List the identity providers in the order of their buttons.

    \b
    Example:
      sso idp list
    """
    providers = with_records(ctx, lambda records: records.providers.list())
    print_list(form, [_listed(provider) for provider in providers])


def _listed(provider: Fields) -> Fields:
    return {
        "id": provider["id"],
        "kind": provider["kind"],
        "name": provider["name"],
        "issuer": provider["issuer"] or provider["userinfo_url"],
        "client_id": provider["client_id"],
        "flags": [name for name in FLAGS if provider[name]],
    }


@command.command()
@PROVIDER_ID
@yes_option
@click.pass_context
def delete(ctx: click.Context, provider_id: str, yes: bool) -> None:
    """Delete an identity provider and all links to it. Players can no longer sign in with it.

    \b
    Example:
      sso idp delete steam
    """
    linked, stranded = with_records(ctx, lambda records: records.providers.count_links(provider_id))
    counted = "more than 1,000" if linked > 1000 else linked
    confirm(
        f"Delete {provider_id}? {counted} players sign in with it, {stranded} of them have no password, no "
        "passkey and no other provider.",
        yes,
    )
    with_records(ctx, lambda records: records.providers.delete(provider_id))
    echo(f"{provider_id} is deleted")


def _record(provider_id: str, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of `sso apply` with the options that were given."""
    from_stdin, scopes, claims = (options.pop(name) for name in ("client_secret_stdin", "scopes", "claims"))
    certificates = options.pop("certificates")
    record = {name: value for name, value in options.items() if value is not None and (value or name in EITHER)}
    record["id"] = provider_id
    if scopes:
        record["scopes"] = [word for scope in scopes for word in scope.split()]
    if claims:
        record["claims"] = dict(_read_claim(claim) for claim in claims)
    if from_stdin:
        record["client_secret"] = _secret()
    if certificates:
        record["certificates"] = certificates.read()
    return record


def _read_claim(text: str) -> tuple[str, str]:
    name, equals, member = text.partition("=")
    if not (name and equals and member):
        raise CommandFailure("--claim: expected NAME=MEMBER, such as subject=id")
    return name, member


def _secret() -> str:
    secret = read_line("secret")
    if not secret:
        raise CommandFailure("--client-secret-stdin: expected the secret on standard input")
    return secret
