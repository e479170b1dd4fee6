"""The fields of the forms for identity providers. Their names are those of ``sso apply``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sso.console.users.form import split_list
from sso.core.field_errors import FieldError
from sso.upstream.model import CLAIMS
from sso.upstream.provider_operations import REQUIRED
from sso.upstream.provider_record import FLAGS, URLS

TEXTS = ("name", "client_id", *URLS)
CHECKS = tuple(name for name in FLAGS if name != "disabled")  # has buttons of its own
# Fields whose change neither gives access to accounts nor takes it away. Other changes need recent authentication.
HARMLESS = frozenset({"name", "position"})


# The fields that a test of the connection may find wrong.
FIELD_TITLES = {
    "issuer": "Issuer",
    "client_secret": "Client id and Client secret",
    "authorization_url": "Authorization address",
    "token_url": "Token address",
    "userinfo_url": "Userinfo address",
}


@dataclass(frozen=True)
class ProviderPreset:
    """A kind of provider, or a known one, with the values that its form begins with."""

    key: str
    title: str
    about: str
    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)


PRESETS = {
    preset.key: preset
    for preset in (
        ProviderPreset(
            "google",
            "Google",
            "OpenID Connect",
            "oidc",
            {"id": "google", "name": "Google", "issuer": "https://accounts.google.com", "trusted_email": True},
        ),
        ProviderPreset("steam", "Steam", "No registration needed", "steam", {"id": "steam", "name": "Steam"}),
        ProviderPreset(
            "discord",
            "Discord",
            "OAuth 2.0",
            "oauth2",
            {
                "id": "discord",
                "name": "Discord",
                "authorization_url": "https://discord.com/oauth2/authorize",
                "token_url": "https://discord.com/api/oauth2/token",
                "userinfo_url": "https://discord.com/api/users/@me",
                "scopes": ["identify", "email"],
                "claims": {"subject": "id", "name": "username", "email_verified": "verified"},
            },
        ),
        ProviderPreset(
            "github",
            "GitHub",
            "OAuth 2.0",
            "oauth2",
            {
                "id": "github",
                "name": "GitHub",
                "authorization_url": "https://github.com/login/oauth/authorize",
                "token_url": "https://github.com/login/oauth/access_token",
                "userinfo_url": "https://api.github.com/user",
                "scopes": ["read:user"],
                "claims": {"subject": "id", "name": "login"},
            },
        ),
        ProviderPreset("oidc", "OpenID Connect", "Keycloak, Microsoft, Okta and others", "oidc"),
        ProviderPreset("oauth2", "OAuth 2.0", "With an address that returns the user's data", "oauth2"),
    )
}


def shown_fields(kind: str) -> frozenset[str]:
    """Returns the fields that a provider of this kind has, beyond its name, position and check boxes."""
    of_client = {"client_id", "client_secret", "scopes"} if kind != "steam" else set()
    of_oauth2 = {"claims"} if kind == "oauth2" else set()
    return frozenset(REQUIRED.get(kind, ())) | of_client | of_oauth2


def shown_checks(kind: str) -> tuple[str, ...]:
    """Returns the check boxes of a provider of this kind: Steam sends no e-mail address and no tokens."""
    return ("trusted_second_factor",) if kind == "steam" else CHECKS


def provider_body(form: dict[str, str]) -> dict[str, Any]:
    """Returns the fields of a form as JSON values. Raises FieldError.

    A form names its check boxes in ``flags``, because a browser does not send an empty one. An empty secret is none:
    the provider keeps the secret that it has.
    """
    body: dict[str, Any] = {name: form[name].strip() for name in TEXTS if name in form}
    if "scopes" in form:
        body["scopes"] = split_list(form["scopes"])
    if "claims" in form:
        body["claims"] = _claims(form["claims"])
    if "position" in form:
        body["position"] = _number(form["position"].strip() or "0")
    if form.get("client_secret"):
        body["client_secret"] = form["client_secret"]
    return body | {name: name in form for name in CHECKS if name in form.get("flags", "").split()}


def claims_text(claims: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={member}" for name, member in claims.items())


def _claims(text: str) -> dict[str, str]:
    claims: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, member = (part.strip() for part in line.partition("="))
        if not equals or name not in CLAIMS or not member:
            raise FieldError(("claims",), f"each line must be NAME=MEMBER, with a name among {', '.join(CLAIMS)}")
        if name in claims:
            raise FieldError(("claims",), f"{name} must be given once")
        claims[name] = member
    return claims


def _number(text: str) -> int | str:
    """Returns the text itself if it is no number, which the management API refuses."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text
