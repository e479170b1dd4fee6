"""The fields of the forms for identity providers. Their names are those of ``sso apply``."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field

from sso.console.form_values import read_number, split_list
from sso.core.field_errors import FieldError
from sso.upstream.model import CLAIMS, TICKET_KINDS
from sso.upstream.provider_operations import REQUIRED
from sso.upstream.provider_record import FLAGS, URLS
from sso.upstream.provider_record import TEXTS as RECORD_TEXTS

TEXTS = ("name", "client_id", *URLS, *RECORD_TEXTS)
CHECKS = tuple(name for name in FLAGS if name != "disabled")  # has buttons of its own
BROWSER_CHECKS = tuple(name for name in CHECKS if name != "create_users")
# Fields whose change neither gives access to accounts nor takes it away. Other changes need recent authentication.
HARMLESS = frozenset({"name", "position"})


# The fields that a test of the connection may find wrong.
FIELD_TITLES = {
    "issuer": "Issuer",
    "jwks_uri": "Address of the keys",
    "client_secret": "Client id and Client secret",
    "authorization_url": "Authorization address",
    "token_url": "Token address",
    "userinfo_url": "Userinfo address",
}


class ProviderPreset(Struct, frozen=True):
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
                "trusted_email": True,
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
        ProviderPreset(
            "oidc", "OpenID Connect", "Keycloak, Microsoft, Okta and others", "oidc", {"trusted_email": True}
        ),
        ProviderPreset("oauth2", "OAuth 2.0", "With an address that returns the user's data", "oauth2"),
        ProviderPreset("steam_ticket", "Steam tickets", "GetAuthTicketForWebApi", "steam_ticket", {"id": "steam-game"}),
        ProviderPreset("google_play", "Google Play Games", "Server auth codes", "google_play", {"id": "google-play"}),
        ProviderPreset(
            "game_center", "Game Center", "Signatures of Apple", "game_center", {"id": "game-center", "max_age": 300}
        ),
        ProviderPreset(
            "oidc_ticket", "ID tokens", "Epic, Xbox, PlayStation, Apple, GOG", "oidc_ticket", {"max_age": 300}
        ),
    )
}


class FieldText(NamedTuple):
    label: str
    hint: str


CLIENT_ID = FieldText("Client id", "The id that the provider has given to this service.")
CLIENT_SECRET = FieldText("Client secret", "")
# What stores call the id and the secret of a game, and where to find them.
CLIENT_TEXTS = {
    "steam_ticket": (
        FieldText("App ID", "The number of the game at Steam, on its page in Steamworks."),
        FieldText("Web API key", "A publisher key: Steamworks, Users & Permissions, Manage Groups, your group."),
    ),
    "google_play": (
        FieldText(
            "Client id",
            "That of the game server, not of the Android app: Play Console, Play Games Services, Configuration.",
        ),
        FieldText("Client secret", "Google Cloud Console, APIs & Services, Credentials, the web client of the game."),
    ),
    "game_center": (
        FieldText("Bundle id", "CFBundleIdentifier of the game: App Store Connect, Apps, App Information."),
        CLIENT_SECRET,
    ),
    "oidc_ticket": (
        FieldText("Audience", "The claim aud of the ID tokens: the client id of the game at the store."),
        CLIENT_SECRET,
    ),
}
TICKET_FIELDS = {
    "steam_ticket": {"client_secret", "ticket_identity"},
    "google_play": {"client_secret"},
    "game_center": {"max_age", "certificates"},
    "oidc_ticket": {"jwks_uri", "max_age"},
}


def shown_fields(kind: str) -> frozenset[str]:
    """Returns the fields that a provider of this kind has, beyond its name, position and check boxes."""
    if kind in TICKET_KINDS:
        return frozenset(REQUIRED[kind]) | TICKET_FIELDS[kind]
    of_client = {"client_id", "client_secret", "scopes"} if kind != "steam" else set()
    of_oauth2 = {"claims"} if kind == "oauth2" else set()
    return frozenset(REQUIRED.get(kind, ())) | of_client | of_oauth2


def shown_checks(kind: str) -> tuple[str, ...]:
    """Returns the check boxes of a provider of this kind: Steam sends no e-mail address and no tokens."""
    if kind in TICKET_KINDS:
        return ("create_users", "trusted_second_factor")
    return ("trusted_second_factor",) if kind == "steam" else BROWSER_CHECKS


def client_texts(kind: str) -> tuple[FieldText, FieldText]:
    """Returns the labels and hints of the id and the secret."""
    return CLIENT_TEXTS.get(kind, (CLIENT_ID, CLIENT_SECRET))


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
    body |= {name: read_number(form[name].strip() or "0") for name in ("position", "max_age") if name in form}
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
