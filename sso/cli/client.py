"""sso client …"""

import sys
from typing import Any

import click

from sso.cli.client_attributes import OPTIONS, PROFILE_METHODS, PROFILES, attribute_options, attributes
from sso.cli.client_registration import approve, refuse, registration_token, registration_tokens
from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list, print_record, record_options
from sso.cli.records import with_records
from sso.cli.standard_input import read_line
from sso.cli.types import duration, overlap_duration
from sso.core.ids import secret_token

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
      sso client add bank --profile fapi2 --jwks-uri https://bank.example.com/jwks --redirect-uri https://bank.example.com/cb
      sso client add forum --profile strict --host forum.example.com
    """
    options["profile"] = options["profile"] or _ask_profile()
    public = public or options["token_endpoint_auth_method"] == "none"  # noqa: S105 - a method
    has_keys = "private_key_jwt" in (options["token_endpoint_auth_method"], PROFILE_METHODS.get(options["profile"]))
    without_secret = public or has_keys
    if without_secret and (options["profile"] == "strict" or secret_stdin):
        raise click.UsageError("a client without a secret needs --profile oidc and excludes --secret-stdin")
    fields = {"client_id": client_id, "name": client_id} | attributes(options)
    has_codes = "authorization_code" in fields.get("grant_types", ["authorization_code"])
    if has_codes and not options["redirect_hosts"] and not options["redirect_uris"]:
        raise click.UsageError("expected at least one --host or --redirect-uri")
    secret = None if without_secret else _secret(secret_stdin)
    fields |= {"client_secret": secret} if secret else {"public": True} if public else {}
    with option_errors(OPTIONS):
        with_records(ctx, lambda records: records.clients.add(fields))
    echo(f"client_id {client_id}")
    if secret and not secret_stdin:
        echo(f"client_secret {secret}")


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
    with option_errors(OPTIONS):
        with_records(ctx, lambda records: records.clients.change(client_id, fields))
    echo(f"{client_id} is changed")


def _ask_profile() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError("--profile is required: oidc, fapi2 or strict")
    for name, meaning in PROFILES.items():
        echo(f"{name}: {meaning}", err=True)
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

    print_list(form, with_records(ctx, lambda records: records.clients.list()))


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

    print_record(form, with_records(ctx, lambda records: records.clients.get(client_id)))


@command.command("rotate-secret")
@CLIENT_ID
@click.option(
    "--finish", is_flag=True, help="Invalidate the old secret, once every server of the site has the new one."
)
@click.option(
    "--overlap",
    type=overlap_duration,
    help="How long the old secret stays valid, such as 12h or 7d (default: until --finish). With 0, everything that "
    "was issued to the client ends too: for a secret that has leaked.",
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
      sso client rotate-secret shop --overlap 0
    """
    if finish and (overlap is not None or expires_in is not None):
        raise click.UsageError("--finish excludes --overlap and --expires-in")

    if finish:
        with_records(ctx, lambda records: records.clients.finish_rotation(client_id))
        echo(f"only the newest secret of {client_id} is valid")
    else:
        secret, expires_at = with_records(
            ctx, lambda records: records.clients.rotate_secret(client_id, overlap, expires_in)
        )
        echo(f"client_secret {secret}")
        if expires_at:
            echo(f"client_secret_expires_at {expires_at}", err=True)  # scripts read the secret from the output


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
    echo(f"{client_id} is disabled")


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
    echo(f"{client_id} is enabled")


for registration_command in (approve, refuse, registration_token, registration_tokens):
    command.add_command(registration_command)


def _set_disabled(ctx: click.Context, client_id: str, *, disabled: bool) -> None:
    with_records(ctx, lambda records: records.clients.set_disabled(client_id, disabled=disabled))


def _secret(from_stdin: bool) -> str:
    """Returns the secret. It is never an argument, which other users of the machine could see."""
    if not from_stdin:
        return secret_token()
    secret = read_line("secret")
    if not secret:
        raise CommandFailure("expected the secret on standard input")
    return secret
