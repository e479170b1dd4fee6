"""sso client …"""

import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sso.cli.context import CommandFailure, with_services, write_audit_entry
from sso.cli.groups import Subcommands
from sso.cli.output import Format, Record, list_options, print_list, print_record, record_options
from sso.cli.services import CommandServices
from sso.core.algorithms import CHEAP_ALGORITHMS
from sso.core.ids import secret_token

if TYPE_CHECKING:
    from sso.oauth.model import Client

T = TypeVar("T")
_OPTIONS = {
    "client_id": "CLIENT_ID",
    "client_secret": "--secret-stdin",
    "name": "--name",
    "redirect_hosts": "--host",
    "redirect_uris": "--redirect-uri",
}

CLIENT_ID = click.argument("client_id")


@click.group(cls=Subcommands)
def command() -> None:
    """Manage OAuth clients (web sites that use this login) and their secrets.

    \b
    Example:
      sso client add shop --name "Tank Shop" --host shop.example.com
      sso client rotate-secret shop
    """


@command.command()
@CLIENT_ID
@click.option("--name", default="", help="Name shown to people (default: the client id).")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="Host name of its redirect URIs; http://host allows URIs without TLS. May be given several times.",
)
@click.option(
    "--redirect-uri",
    "uris",
    multiple=True,
    help="A complete redirect URI; if any is given, only these are allowed. May be given several times.",
)
@click.option(
    "--profile",
    type=click.Choice(["strict", "oidc"]),
    default="strict",
    show_default=True,
    help="strict: as the specification of this service says; oidc: as standard OpenID Connect libraries expect.",
)
@click.option(
    "--id-alg",
    type=click.Choice(CHEAP_ALGORITHMS),
    help="ID token signing algorithm (default: the main key's, RS256 at first).",
)
@click.option(
    "--public",
    is_flag=True,
    help="Create no secret, the client uses PKCE: for programs on devices of their users. Needs --profile oidc.",
)
@click.option("--consent", is_flag=True, help="Ask users for consent before the client gets their data.")
@click.option(
    "--first-party", is_flag=True, help="The client is your own: tokens that it exchanges may be bound to a device."
)
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input (default: generate one).")
@click.pass_context
def add(ctx: click.Context, /, client_id: str, **options: Any) -> None:
    """Add a client and print its secret, which is not shown again.

    \b
    Example:
      sso client add shop --host shop.example.com --profile oidc
      sso client add launcher --public --profile oidc --redirect-uri http://127.0.0.1/callback
    """
    if options["public"] and (options["profile"] != "oidc" or options["secret_stdin"]):
        raise click.UsageError("--public needs --profile oidc and excludes --secret-stdin")
    if not options["hosts"] and not options["uris"]:
        raise click.UsageError("expected at least one --host or --redirect-uri")
    secret = None if options["public"] else _secret(options["secret_stdin"])
    fields = {
        "client_id": client_id,
        "name": options["name"] or client_id,
        "redirect_hosts": list(options["hosts"]),
        "redirect_uris": list(options["uris"]),
        "profile": options["profile"],
        "id_alg": options["id_alg"] or "",
        "consent": options["consent"],
        "first_party": options["first_party"],
    }
    from sso.oauth.redirect_uris import is_redirect_uri
    from sso.state.document import DocumentError, parse

    try:
        document = parse({"clients": [fields | ({"client_secret": secret} if secret else {})]})
    except DocumentError as error:
        raise CommandFailure(_in_words_of_options(str(error))) from None

    async def work(services: CommandServices) -> None:
        if await services.clients.get(client_id):
            raise CommandFailure(f"there is already a client {client_id}")
        allow_http = not services.settings.https
        for uri in options["uris"]:
            if not is_redirect_uri(uri, options["hosts"], options["uris"], allow_http=allow_http):
                raise CommandFailure(f"--redirect-uri {uri}: not allowed for this client; see `sso client add --help`")
        await services.applier.apply(document)

    with_services(ctx, work, with_permissions=False)
    click.echo(f"client_id {client_id}")
    if secret and not options["secret_stdin"]:
        click.echo(f"client_secret {secret}")


@command.command("list")
@list_options
@click.pass_context
def list_clients(ctx: click.Context, form: Format | None) -> None:
    """List the clients: id, name, profile, hosts, and flags such as disabled.

    \b
    Example:
      sso client list
    """

    async def work(services: CommandServices) -> "list[Client]":
        return await services.clients.list()

    clients = with_services(ctx, work, with_permissions=False)
    print_list(form, [_listed(client) for client in clients])


@command.command()
@CLIENT_ID
@record_options
@click.pass_context
def show(ctx: click.Context, client_id: str, form: Format | None) -> None:
    """Show a client, without its secrets.

    \b
    Example:
      sso client show shop
    """

    async def work(services: CommandServices) -> "Client | None":
        return await services.clients.get(client_id)

    client = _require(with_services(ctx, work, with_permissions=False), client_id)
    shown = {name: getattr(client, name) for name in client.__dataclass_fields__ if not name.endswith("_sealed")}
    shown["secrets"] = sum(sealed is not None for sealed in (client.secret_sealed, client.second_sealed))
    print_record(form, shown)


@command.command("rotate-secret")
@CLIENT_ID
@click.option(
    "--finish", is_flag=True, help="Invalidate the old secret, once every server of the site has the new one."
)
@click.pass_context
def rotate_secret(ctx: click.Context, client_id: str, finish: bool) -> None:
    """Create and print a new secret. The old one stays valid until this is run with --finish.

    \b
    Example:
      sso client rotate-secret shop
      sso client rotate-secret shop --finish
    """

    async def rotate(services: CommandServices) -> str | None:
        client = _require(await services.clients.get(client_id), client_id)
        if client.is_public:
            raise CommandFailure(f"{client_id} is a public client: it has no secret")
        await write_audit_entry(services, "client.rotate_secret", client_id, {"client_secret": "new"})
        return await services.clients.rotate_secret(client_id)

    async def end_old(services: CommandServices) -> bool:
        _require(await services.clients.get(client_id), client_id)
        await write_audit_entry(services, "client.finish_rotation", client_id, {"client_secret": "only the newest"})
        return await services.clients.finish_rotation(client_id)

    if finish:
        _require(True if with_services(ctx, end_old, with_permissions=False) else None, client_id)
        click.echo(f"only the newest secret of {client_id} is valid")
    else:
        click.echo(f"client_secret {_require(with_services(ctx, rotate, with_permissions=False), client_id)}")


@command.command()
@CLIENT_ID
@click.pass_context
def disable(ctx: click.Context, client_id: str) -> None:
    """Disable a client and revoke everything that it was granted, at once.

    \b
    Example:
      sso client disable shop
    """
    _set_disabled(ctx, client_id, disabled=True)
    click.echo(f"{client_id} is disabled")


@command.command()
@CLIENT_ID
@click.pass_context
def enable(ctx: click.Context, client_id: str) -> None:
    """Enable a disabled client again.

    \b
    Example:
      sso client enable shop
    """
    _set_disabled(ctx, client_id, disabled=False)
    click.echo(f"{client_id} is enabled")


def _set_disabled(ctx: click.Context, client_id: str, *, disabled: bool) -> None:
    async def work(services: CommandServices) -> bool:
        _require(await services.clients.get(client_id), client_id)
        await write_audit_entry(
            services, "client.disable" if disabled else "client.enable", client_id, {"disabled": disabled}
        )
        return await services.clients.set_disabled(client_id, disabled)

    _require(True if with_services(ctx, work, with_permissions=False) else None, client_id)


def _require(value: T | None, client_id: str) -> T:
    """Returns the value, or fails if there is none because the client does not exist."""
    if value is None:
        raise CommandFailure(f"there is no client {client_id}")
    return value


def _listed(client: "Client") -> Record:
    flags = [name for name in ("disabled", "consent", "first_party") if getattr(client, name)]
    return {
        "client_id": client.client_id,
        "name": client.name,
        "profile": client.profile,
        "hosts": list(client.redirect_hosts or client.redirect_uris),
        "flags": [*flags, *(["public"] if client.is_public else [])],
    }


def _in_words_of_options(error: str) -> str:
    """Names the option in an error of the document that `sso client add` applies."""
    field, _, expected = error.removeprefix("clients[0].").partition(": ")
    field = re.sub(r"\[\d+\]", "", field)
    return f"{_OPTIONS.get(field, field)}: {expected}"


def _secret(from_stdin: bool) -> str:
    """Returns the secret. It is never an argument, which other users of the machine could see."""
    if not from_stdin:
        return secret_token()
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise CommandFailure("expected the secret on standard input")
    return secret
