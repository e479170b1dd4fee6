"""sso client …"""

import sys
from typing import Any, TypeVar

import click
import orjson

from sso.cli.context import CommandFailure, console, record, with_services
from sso.core.ids import secret_token
from sso.core.keys import CHEAP
from sso.oauth.model import Client
from sso.oauth.redirect_uris import is_redirect_uri
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import DocumentError, parse

T = TypeVar("T")

CLIENT_ID = click.argument("client_id")


@click.group()
def command() -> None:
    """Web sites that sign their users in here: add, show, disable; secrets."""


@command.command()
@CLIENT_ID
@click.option("--name", default="", help="What people see; the client id without it.")
@click.option(
    "--host", "hosts", multiple=True, help="Host name of its redirect URIs, or http://host without TLS. Repeatable."
)
@click.option(
    "--redirect-uri", "uris", multiple=True, help="With these, only exactly these addresses are answered. Repeatable."
)
@click.option(
    "--profile",
    type=click.Choice(["strict", "oidc"]),
    default="strict",
    show_default=True,
    help="To the letter of the specification, or as standard libraries expect it.",
)
@click.option(
    "--id-alg",
    type=click.Choice(CHEAP),
    help="What its id tokens are signed with, which is cheaper than RS256; without it, as everything else.",
)
@click.option("--public", is_flag=True, help="No secret, PKCE instead: for programs in their users' hands (oidc).")
@click.option("--consent", is_flag=True, help="Ask people before it learns anything of them.")
@click.option("--first-party", is_flag=True, help="One of your own: its exchanged tokens may be bound to a device.")
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input; one is made up without it.")
@click.pass_context
def add(ctx: click.Context, /, client_id: str, **options: Any) -> None:
    """Add a client; prints its secret, which is not shown again."""
    if options["public"] and (options["profile"] != "oidc" or options["secret_stdin"]):
        raise click.UsageError("--public goes with --profile oidc and without a secret")
    if not options["hosts"] and not options["uris"]:
        raise click.UsageError("at least one --host or --redirect-uri is needed")
    secret = None if options["public"] else _secret(options["secret_stdin"])
    part = {
        "client_id": client_id,
        "name": options["name"] or client_id,
        "redirect_hosts": list(options["hosts"]),
        "redirect_uris": list(options["uris"]),
        "profile": options["profile"],
        "id_alg": options["id_alg"] or "",
        "consent": options["consent"],
        "first_party": options["first_party"],
    }
    try:
        document = parse({"clients": [part | ({"client_secret": secret} if secret else {})]})
    except DocumentError as error:
        raise CommandFailure(str(error).removeprefix("clients[0].")) from None

    async def work(services: Services) -> None:
        if await services.oauth.clients.get(client_id):
            raise CommandFailure(f"there is already a client {client_id}")
        any_http = not services.settings.https
        for uri in options["uris"]:
            if not is_redirect_uri(uri, options["hosts"], options["uris"], any_http=any_http):
                raise CommandFailure(f"{uri} can be no redirect URI of this client")
        await Applier(services.database, services.hasher, services.keyring, console()).apply(document)

    with_services(ctx, work)
    click.echo(f"client_id {client_id}")
    if secret and not options["secret_stdin"]:
        click.echo(f"client_secret {secret}")


@command.command("list")
@click.pass_context
def list_clients(ctx: click.Context) -> None:
    """List clients: id, name, profile, hosts, and what is special about them."""

    async def work(services: Services) -> list[Client]:
        return await services.oauth.clients.list()

    for client in with_services(ctx, work):
        hosts = ",".join(client.redirect_hosts or client.redirect_uris)
        click.echo("\t".join([client.client_id, client.name, client.profile, hosts, ",".join(_marks(client))]))


@command.command()
@CLIENT_ID
@click.pass_context
def show(ctx: click.Context, client_id: str) -> None:
    """Show all that is known of a client, as JSON; its secrets stay secret."""

    async def work(services: Services) -> Client | None:
        return await services.oauth.clients.get(client_id)

    client = _found(with_services(ctx, work), client_id)
    facts = {name: getattr(client, name) for name in client.__dataclass_fields__ if not name.endswith("_sealed")}
    facts["secrets"] = sum(sealed is not None for sealed in (client.secret_sealed, client.second_sealed))
    click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2))


@command.command("rotate-secret")
@CLIENT_ID
@click.option("--finish", is_flag=True, help="End the old secret, once every server of the site has the new one.")
@click.pass_context
def rotate_secret(ctx: click.Context, client_id: str, finish: bool) -> None:
    """Make a new secret and print it. The old one stays valid until this is run with --finish."""

    async def rotate(services: Services) -> str | None:
        client = _found(await services.oauth.clients.get(client_id), client_id)
        if client.is_public:
            raise CommandFailure(f"{client_id} is a public client: it has no secret")
        await record(services, "client.rotate_secret", client_id, {"client_secret": "new"})
        return await services.oauth.clients.rotate_secret(client_id)

    async def end_old(services: Services) -> bool:
        _found(await services.oauth.clients.get(client_id), client_id)
        await record(services, "client.finish_rotation", client_id, {"client_secret": "only the newest"})
        return await services.oauth.clients.finish_rotation(client_id)

    if finish:
        _must_be(with_services(ctx, end_old), client_id)
        click.echo(f"only the newest secret of {client_id} is valid")
    else:
        click.echo(f"client_secret {_found(with_services(ctx, rotate), client_id)}")


@command.command()
@CLIENT_ID
@click.pass_context
def disable(ctx: click.Context, client_id: str) -> None:
    """Disable a client: everything it was granted ends at once."""
    _set_disabled(ctx, client_id, disabled=True)
    click.echo(f"{client_id} is disabled")


@command.command()
@CLIENT_ID
@click.pass_context
def enable(ctx: click.Context, client_id: str) -> None:
    """Let a disabled client sign its users in again."""
    _set_disabled(ctx, client_id, disabled=False)
    click.echo(f"{client_id} is enabled")


def _set_disabled(ctx: click.Context, client_id: str, *, disabled: bool) -> None:
    async def work(services: Services) -> bool:
        _found(await services.oauth.clients.get(client_id), client_id)
        await record(services, "client.disable" if disabled else "client.enable", client_id, {"disabled": disabled})
        return await services.oauth.clients.set_disabled(client_id, disabled)

    _must_be(with_services(ctx, work), client_id)


def _must_be(found: bool, client_id: str) -> None:
    if not found:
        raise CommandFailure(f"there is no client {client_id}")


def _found(value: T | None, client_id: str) -> T:
    if value is None:
        raise CommandFailure(f"there is no client {client_id}")
    return value


def _marks(client: Client) -> list[str]:
    names = ("disabled", "consent", "first_party")
    return [name for name in names if getattr(client, name)] + (["public"] if client.is_public else [])


def _secret(from_stdin: bool) -> str:
    """Never an argument, where others on the machine could see it."""
    if not from_stdin:
        return secret_token()
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise CommandFailure("standard input holds no secret")
    return secret
