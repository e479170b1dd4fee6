"""The fields of an identity provider, as administrators see and change them in the management API and in documents."""

import hashlib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from sso.core.certificates import UnusableCertificate, load_certificates
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.records import RecordModel, matching, without_control_characters
from sso.upstream.model import (
    CLAIMS,
    GAME_CENTER_KEYS,
    GOOGLE_PLAYER_URL,
    GOOGLE_TOKEN_URL,
    PROVIDER_ID,
    STEAM_ISSUER,
    STEAM_WEB_API,
    IdentityProvider,
)

URLS = ("issuer", "authorization_url", "token_url", "userinfo_url", "jwks_uri")
FLAGS = ("trusted_email", "trusted_second_factor", "keep_tokens", "create_users", "disabled")
TEXTS = ("ticket_identity", "certificates")
TICKET_AGE_S = 300
MAX_TICKET_AGE_S = 86400
MAX_CERTIFICATES = 32 * 1024
MAX_SCOPES = 32
MAX_POSITION = 2**53 - 1  # the largest integer that every JSON reader keeps exactly
# The values of a new provider whose record does not have these fields.
DEFAULTS: dict[str, dict[str, Any]] = {
    # By OpenID Connect, the provider has made sure that a verified address belongs to the person.
    "oidc": {"scopes": ["openid", "email", "profile"], "trusted_email": True},
    "oauth2": {},
    "steam": {"issuer": STEAM_ISSUER, "name": "Steam"},
    "steam_ticket": {"issuer": STEAM_WEB_API, "name": "Steam"},
    "google_play": {"token_url": GOOGLE_TOKEN_URL, "userinfo_url": GOOGLE_PLAYER_URL, "name": "Google Play"},
    "game_center": {"issuer": GAME_CENTER_KEYS, "name": "Game Center", "max_age": TICKET_AGE_S},
    "oidc_ticket": {"max_age": TICKET_AGE_S},
}


def _check_word(text: str, max_length: int) -> str:
    if not text:
        raise ValueError("must not be empty")
    if len(text) > max_length:
        raise ValueError(f"must be at most {max_length} characters")
    return without_control_characters(text)


def _word(max_length: int) -> AfterValidator:
    return AfterValidator(lambda text: _check_word(text, max_length))


def _optional_word(text: str) -> str:
    """ "" is the value of a provider without one, and is sent back by clients that have read it."""
    return _check_word(text, 256) if text else text


def _url(text: str) -> str:
    """``allow_http`` is checked by the operations, which know the base URL of this service."""
    if text and not is_outgoing_url(text, allow_http=True):
        raise ValueError(EXPECTED)
    return text


def _issuer(text: str) -> str:
    if "?" in text:
        raise ValueError(EXPECTED)
    return _url(text)


def _scope(text: str) -> str:
    if not text.isascii() or any(character in ' "\\' for character in text):
        raise ValueError("must not contain spaces, quotes or backslashes")
    return text


def _few_scopes(scopes: list[str]) -> list[str]:
    if len(scopes) > MAX_SCOPES:
        raise ValueError(f"must have at most {MAX_SCOPES} items")
    return scopes


def _known_claims(claims: dict[str, str]) -> dict[str, str]:
    if not claims.keys() <= {*CLAIMS}:
        raise ValueError(f"expected the names {', '.join(CLAIMS)}")
    return claims


def _position(number: int) -> int:
    if number < 0:
        raise ValueError("must not be negative")
    if number > MAX_POSITION:
        raise ValueError(f"must be at most {MAX_POSITION}")
    return number


def _max_age(seconds: int) -> int:
    if not 0 <= seconds <= MAX_TICKET_AGE_S:
        raise ValueError(f"must be 0 to {MAX_TICKET_AGE_S} seconds")
    return seconds


def _certificates(text: str) -> str:
    if len(text) > MAX_CERTIFICATES:
        raise ValueError(f"must be at most {MAX_CERTIFICATES} characters")
    if text.strip():
        try:
            load_certificates(text)
        except UnusableCertificate as error:
            raise ValueError(str(error)) from None
    return text.strip()


Kind = Literal["oidc", "oauth2", "steam", "steam_ticket", "google_play", "game_center", "oidc_ticket"]
ProviderId = Annotated[str, matching(PROVIDER_ID, "1 to 32 characters of a-z, 0-9 and -, without - at the ends")]
Url = Annotated[str, AfterValidator(_url)]
Scope = Annotated[str, _word(128), AfterValidator(_scope)]


class ProviderChanges(RecordModel):
    """The fields of an identity provider, each of which may be missing."""

    id: ProviderId | None = None
    kind: Kind | None = None
    name: Annotated[str, _word(256)] | None = None
    issuer: Annotated[str, AfterValidator(_issuer)] | None = None
    client_id: Annotated[str, AfterValidator(_optional_word)] | None = None
    client_secret: Annotated[str, _word(512)] | None = None
    scopes: Annotated[list[Scope], AfterValidator(_few_scopes)] | None = None
    authorization_url: Url | None = None
    token_url: Url | None = None
    userinfo_url: Url | None = None
    claims: Annotated[dict[str, Annotated[str, _word(128)]], AfterValidator(_known_claims)] | None = None
    position: Annotated[int, AfterValidator(_position)] | None = None
    trusted_email: bool | None = None
    trusted_second_factor: bool | None = None
    keep_tokens: bool | None = None
    disabled: bool | None = None
    create_users: bool | None = None
    jwks_uri: Url | None = None
    max_age: Annotated[int, AfterValidator(_max_age)] | None = None
    ticket_identity: Annotated[str, AfterValidator(_optional_word)] | None = None
    certificates: Annotated[str, AfterValidator(_certificates)] | None = None


class ProviderRecord(ProviderChanges):
    id: ProviderId


class NewProvider(ProviderRecord):
    kind: Kind
    # The audit entry of a deletion, which is undone: the provider has its secret again.
    undo_of: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None


def provider_json(provider: IdentityProvider) -> dict[str, Any]:
    """Returns the provider without its secret, whose id changes with it."""
    sealed = provider.secret_sealed
    names: tuple[str, ...] = ("kind", "name", "client_id", "position", "max_age", *URLS, *TEXTS, *FLAGS)
    fields: dict[str, Any] = {name: getattr(provider, name) for name in names}
    return {"id": provider.provider_id, **fields} | {
        "scopes": list(provider.scopes),
        "claims": dict(provider.claims),
        "secret_id": hashlib.sha256(sealed.encode()).hexdigest()[:12] if sealed else None,
    }


def exported_provider(provider: IdentityProvider) -> dict[str, Any]:
    """Returns the record for a document, without the secret and without fields that have no value.

    A new provider gets the fields that are missing from its defaults, so those that have a default are always there.
    """
    record = provider_json(provider)
    always = ("id", "kind", "name", "scopes", "position", "trusted_email", *DEFAULTS[provider.kind])
    return {
        name: record[name]
        for name in dict.fromkeys((*always, "client_id", *URLS, *TEXTS, *FLAGS, "max_age", "claims"))
        if name in always or record[name]
    }
