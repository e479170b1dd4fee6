"""sso client …"""

import json
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sso.cli.client_attributes import PROFILES, attribute_options, attributes, failure, parse_client
from sso.cli.context import CommandFailure, with_services, write_audit_entry
from sso.cli.groups import Subcommands
from sso.cli.output import Format, Record, list_options, print_list, print_record, record_options
from sso.cli.services import CommandServices
from sso.cli.types import duration
from sso.core.ids import secret_token

if TYPE_CHECKING:
    from sso.oauth.model import Client
    from sso.state.document import Document

T = TypeVar("T")

CLIENT_ID = click.argument("client_id")


@click.group(cls=Subcommands)
def command() -> None:
    """Manage OAuth clients (web sites that use this login) and their secrets.

    \b
    Example:
      sso client add shop --profile oidc --name "Tank Shop" --host shop.example.com
      sso client rotate-secret shop
    """


@command.command()
@CLIENT_ID
@attribute_options
@click.option(
    "--public",
    is_flag=True,
    help="Create no secret, the client uses PKCE: for programs on devices of their users. Needs --profile oidc.",
)
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input (default: generate one).")
@click.pass_context
def add(ctx: click.Context, /, client_id: str, *, public: bool, secret_stdin: bool, **options: Any) -> None:
    """Add a client and print its secret, which is not shown again.

    \b
    Example:
      sso client add shop --profile oidc --redirect-uri https://shop.example.com/callback
      sso client add launcher --profile oidc --public --redirect-uri http://127.0.0.1/callback
      sso client add tv --profile oidc --public --grant-types urn:ietf:params:oauth:grant-type:device_code
      sso client add forum --profile strict --host forum.example.com
    """
    options["profile"] = options["profile"] or _ask_profile()
    public = public or options["token_endpoint_auth_method"] == "none"  # noqa: S105 - a method
    without_secret = public or options["token_endpoint_auth_method"] == "private_key_jwt"  # noqa: S105 - a method
    if without_secret and (options["profile"] != "oidc" or secret_stdin):
        raise click.UsageError("a client without a secret needs --profile oidc and excludes --secret-stdin")
    fields = {"client_id": client_id, "name": client_id} | attributes(options)
    has_codes = "authorization_code" in fields.get("grant_types", ["authorization_code"])
    if has_codes and not options["redirect_hosts"] and not options["redirect_uris"]:
        raise click.UsageError("expected at least one --host or --redirect-uri")
    secret = None if without_secret else _secret(secret_stdin)
    document = parse_client(fields | ({"client_secret": secret} if secret else {}))

    async def work(services: CommandServices) -> None:
        if await services.clients.get(client_id):
            raise CommandFailure(f"there is already a client {client_id}")
        await _apply(services, document)

    with_services(ctx, work, with_permissions=False)
    click.echo(f"client_id {client_id}")
    if secret and not secret_stdin:
        click.echo(f"client_secret {secret}")


@command.command("set")
@CLIENT_ID
@attribute_options
@click.pass_context
def set_attributes(ctx: click.Context, /, client_id: str, **options: Any) -> None:
    """Change attributes of a client. Options that are not given keep their values.

    \b
    Example:
      sso client set shop --token-endpoint-auth-method client_secret_basic
      sso client set shop --redirect-uri https://shop.example.com/a --redirect-uri https://shop.example.com/b
    """
    fields = attributes(options)
    if not fields:
        raise click.UsageError("expected at least one attribute to change")
    document = parse_client({"client_id": client_id} | fields)

    async def work(services: CommandServices) -> None:
        _require(await services.clients.get(client_id), client_id)
        await _apply(services, document)

    with_services(ctx, work, with_permissions=False)
    click.echo(f"{client_id} is changed")


async def _apply(services: CommandServices, document: "Document") -> None:
    from sso.oauth.redirect_uris import is_redirect_uri
    from sso.state.document import DocumentError

    (part,) = document.clients
    allow_http = not services.settings.https
    for uri in part.redirect_uris or ():
        if not is_redirect_uri(uri, part.redirect_hosts or (), part.redirect_uris or (), allow_http=allow_http):
            raise CommandFailure(f"--redirect-uri {uri}: not allowed for this client; see `sso client add --help`")
    try:
        await services.applier.apply(document)
    except DocumentError as error:
        raise failure(error) from None
    await _warn_about_application(services, part.application_id)


async def _warn_about_application(services: CommandServices, application_id: int | None) -> None:
    """A client may be added before its application, but gets no tokens until the application exists."""
    from sso.perm.stores.applications import read_application_row

    if application_id and await read_application_row(services.database, application_id) is None:
        click.echo(f"warning: there is no application {application_id}; `sso app list` shows them", err=True)


def _ask_profile() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError("--profile is required: oidc or strict")
    for name, meaning in PROFILES.items():
        click.echo(f"{name}: {meaning}", err=True)
    profile: str = click.prompt("Profile", type=click.Choice(list(PROFILES)), default="oidc", err=True)
    return profile


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
    shown["jwks"] = json.loads(client.jwks) if client.jwks else None
    for name in ("secret_expires", "second_expires"):
        shown[name] = shown[name] and shown[name].isoformat(timespec="seconds")
    shown["client_secret_expires_at"] = client.client_secret_expires_at
    shown["secrets"] = sum(sealed is not None for sealed in (client.secret_sealed, client.second_sealed))
    print_record(form, shown)


@command.command("rotate-secret")
@CLIENT_ID
@click.option(
    "--finish", is_flag=True, help="Invalidate the old secret, once every server of the site has the new one."
)
@click.option(
    "--overlap",
    type=duration,
    help="How long the old secret stays valid, such as 12h or 7d (default: until --finish).",
)
@click.option("--expires-in", type=duration, help="How long the new secret is valid, such as 90d (default: for ever).")
@click.pass_context
def rotate_secret(
    ctx: click.Context, client_id: str, finish: bool, overlap: int | None, expires_in: int | None
) -> None:
    """Create and print a new secret. The old one stays valid for --overlap, or until this is run with --finish.

    \b
    Example:
      sso client rotate-secret shop --overlap 7d --expires-in 90d
      sso client rotate-secret shop
      sso client rotate-secret shop --finish
    """
    if finish and (overlap is not None or expires_in is not None):
        raise click.UsageError("--finish excludes --overlap and --expires-in")

    async def rotate(services: CommandServices) -> tuple[str, int] | None:
        client = _require(await services.clients.get(client_id), client_id)
        if client.secret_sealed is None:
            raise CommandFailure(f"{client_id} has no secret: it is public or uses private_key_jwt")
        await write_audit_entry(services, "client.rotate_secret", client_id, {"client_secret": "new"})
        secret = await services.clients.rotate_secret(client_id, overlap_s=overlap, lifetime_s=expires_in)
        rotated = await services.clients.get(client_id)
        return (secret, rotated.client_secret_expires_at) if secret and rotated else None

    async def end_old(services: CommandServices) -> bool:
        _require(await services.clients.get(client_id), client_id)
        await write_audit_entry(services, "client.finish_rotation", client_id, {"client_secret": "only the newest"})
        return await services.clients.finish_rotation(client_id)

    if finish:
        _require(True if with_services(ctx, end_old, with_permissions=False) else None, client_id)
        click.echo(f"only the newest secret of {client_id} is valid")
    else:
        secret, expires_at = _require(with_services(ctx, rotate, with_permissions=False), client_id)
        click.echo(f"client_secret {secret}")
        if expires_at:
            click.echo(f"client_secret_expires_at {expires_at}", err=True)  # scripts read the secret from the output


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


def _secret(from_stdin: bool) -> str:
    """Returns the secret. It is never an argument, which other users of the machine could see."""
    if not from_stdin:
        return secret_token()
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise CommandFailure("expected the secret on standard input")
    return secret
