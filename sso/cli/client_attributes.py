"""The options of `sso client add` and `sso client set`: one for each attribute of a client."""

import json
import re
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar

import click

from sso.cli.context import CommandFailure
from sso.cli.types import APPLICATION_ID
from sso.core.algorithms import CHEAP_ALGORITHMS

Command = TypeVar("Command", bound=Callable[..., Any])

PROFILES = {
    "oidc": "as standard OpenID Connect libraries expect",
    "fapi2": "the same, with all that the FAPI 2.0 Security Profile demands",
    "strict": "as the specification of this service says, with its SHA1 bearer",
}
PROFILE_METHODS = {"fapi2": "private_key_jwt"}  # the only method of client authentication
_MULTIPLE = "May be given several times."
_ATTRIBUTES = (
    click.option("--name", help="Name shown to people (default: the client id)."),
    click.option(
        "--host",
        "redirect_hosts",
        multiple=True,
        help=f"Host name of its redirect URIs; http://host allows URIs without TLS. {_MULTIPLE}",
    ),
    click.option(
        "--redirect-uri",
        "redirect_uris",
        multiple=True,
        help=f"A complete redirect URI; if any is given, only these are allowed. {_MULTIPLE}",
    ),
    click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        help="; ".join(f"{name}: {meaning}" for name, meaning in PROFILES.items()) + ".",
    ),
    click.option(
        "--id-alg",
        type=click.Choice(CHEAP_ALGORITHMS),
        help="ID token signing algorithm (default: the main key's, RS256 at first).",
    ),
    click.option(
        "--consent/--no-consent", default=None, help="Ask users for consent before the client gets their data."
    ),
    click.option(
        "--first-party/--no-first-party",
        default=None,
        help="The client is your own: tokens that it exchanges may be bound to a device.",
    ),
    click.option(
        "--grant-types",
        multiple=True,
        help="Grant types that it may use, separated by commas (default: authorization_code,refresh_token). Others: "
        "client_credentials, urn:ietf:params:oauth:grant-type:device_code.",
    ),
    click.option(
        "--token-endpoint-auth-method",
        type=click.Choice(["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]),
        help="The only method of client authentication that is accepted (default: any). Needs --profile oidc.",
    ),
    click.option(
        "--jwks",
        type=click.File("rb"),
        help="A file with the JWK set of its public keys, for private_key_jwt.",
    ),
    click.option("--jwks-uri", help="Where it publishes its public keys, in place of --jwks."),
    click.option(
        "--application-id", type=APPLICATION_ID, help="The application of a service client or of a resource server."
    ),
    click.option(
        "--resource-server/--no-resource-server",
        default=None,
        help="It may introspect the tokens of clients of its application.",
    ),
    click.option(
        "--require-pushed-authorization-requests/--no-require-pushed-authorization-requests",
        default=None,
        help="Its authorization requests must be pushed (RFC 9126).",
    ),
    click.option(
        "--dpop-bound-access-tokens/--no-dpop-bound-access-tokens",
        default=None,
        help="Its tokens must be bound to a key that it has (DPoP, RFC 9449).",
    ),
    click.option(
        "--token-exchange/--no-token-exchange",
        default=None,
        help="It may exchange the access tokens of users that it gets for narrower ones (RFC 8693).",
    ),
    click.option(
        "--access-token-format",
        type=click.Choice(["opaque", "jwt"]),
        help="jwt: access tokens that resource servers can verify themselves (default: opaque).",
    ),
    click.option(
        "--origins",
        multiple=True,
        help=f"An origin of its pages in browsers, in addition to those of its redirect URIs. {_MULTIPLE}",
    ),
    click.option(
        "--logo-uri",
        help="Logo on its sign-in pages: a data URI of an SVG, PNG or WebP image, or an https URL at one of its hosts.",
    ),
    click.option("--policy-uri", help="Its privacy policy."),
    click.option("--tos-uri", help="Its terms of service."),
    click.option("--support-uri", help="Where its users get help; may be a mailto: URI."),
    click.option("--accent", help="Colour of buttons and links on its sign-in pages, such as #0f766e."),
    click.option("--signin-text", help="A text on its sign-in form, in place of SSO_SIGNIN_TEXT."),
    click.option(
        "--post-logout-redirect-uris",
        multiple=True,
        help=f"A URI that users may be sent to after a sign-out (default: any at its hosts). {_MULTIPLE}",
    ),
    click.option(
        "--backchannel-logout-uri", help="Where it is notified when a session ends with which a user signed in."
    ),
    click.option(
        "--backchannel-logout-session-required/--no-backchannel-logout-session-required",
        default=None,
        help="It needs the session (sid) in these notifications. They always have it with the profile oidc.",
    ),
)
OPTIONS = {
    "client_id": "CLIENT_ID",
    "client_secret": "--secret-stdin",
    "redirect_hosts": "--host",
    "redirect_uris": "--redirect-uri",
}


def attribute_options(command: Command) -> Command:
    for option in reversed(_ATTRIBUTES):
        command = option(command)
    return command


def attributes(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a document for the options that were given."""
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    if options.get("grant_types"):
        fields["grant_types"] = [name for text in options["grant_types"] for name in re.split(r"[,\s]+", text) if name]
    if options.get("jwks"):
        fields["jwks"] = _read_json(options["jwks"])
    return {name: value for name, value in fields.items() if value is not None and value != []}


def _read_json(file: BinaryIO) -> Any:
    try:
        return json.loads(file.read())
    except (ValueError, RecursionError):
        raise CommandFailure("--jwks: expected a file with JSON") from None
