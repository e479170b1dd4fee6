"""Providers, one sign-in at a provider, and the identity that results from it."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any, Protocol

from sso.core.encryption import column_purpose
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.ids import secret_token

BROWSER_KINDS = ("oidc", "oauth2", "steam")
TICKET_KINDS = ("steam_ticket", "google_play", "game_center", "oidc_ticket")
KINDS = (*BROWSER_KINDS, *TICKET_KINDS)
PROVIDER_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?", re.ASCII)
STEAM_ISSUER = "https://steamcommunity.com/openid"
STEAM_WEB_API = "https://partner.steam-api.com"
STEAM_APP_ID = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
GOOGLE_PLAYER_URL = "https://games.googleapis.com/games/v1/players/me"
GAME_CENTER_KEYS = "https://gc.apple.com"  # Apple's keys are at this host and hosts below it
CLAIMS = ("subject", "name", "email", "email_verified")
MAX_SUBJECT, MAX_NAME, MAX_EMAIL = 255, 128, 254


class IdentityProvider(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret_sealed"})

    provider_id: str
    kind: str
    name: str
    issuer: str
    client_id: str
    secret_sealed: str | None
    scopes: tuple[str, ...]
    authorization_url: str
    token_url: str
    userinfo_url: str
    claims: Mapping[str, str]
    position: int
    trusted_email: bool
    trusted_second_factor: bool
    keep_tokens: bool
    disabled: bool
    create_users: bool = False
    jwks_uri: str = ""
    max_age: int = 0
    ticket_identity: str = ""
    certificates: str = ""

    @property
    def is_for_tickets(self) -> bool:
        """Whether games send tickets of it, and browsers cannot use it."""
        return self.kind in TICKET_KINDS

    @classmethod
    def from_row(cls, row: Any) -> "IdentityProvider":
        values = {name: row[name] for name in cls.__struct_fields__}
        return cls(**{**values, "scopes": tuple(values["scopes"])})


class Attempt(RecordWithHiddenFields, frozen=True):
    """A sign-in at a provider. ``browser_secret`` is the cookie of the browser that began it.

    ``state`` is known to the provider and part of URLs. Nonce and code verifier also depend on the cookie, so an
    answer that is sent from another browser cannot be used even by someone who can read the database.
    """

    hidden_fields = frozenset({"browser_secret"})

    state: str
    browser_secret: str
    callback_url: str
    needs_new_login: bool = False  # the provider is asked not to sign in silently

    @classmethod
    def new(cls, browser_secret: str, callback_url: str, *, needs_new_login: bool) -> "Attempt":
        return cls(secret_token(), browser_secret, callback_url, needs_new_login)

    @property
    def nonce(self) -> str:
        return self._derived("nonce")

    @property
    def code_verifier(self) -> str:
        return self._derived("code verifier")

    @property
    def code_challenge(self) -> str:
        return _base64url(hashlib.sha256(self.code_verifier.encode()).digest())

    def _derived(self, purpose: str) -> str:
        return _base64url(hmac.digest(self.browser_secret.encode(), f"{purpose}:{self.state}".encode(), "sha256"))


class UpstreamIdentity(RecordWithHiddenFields, frozen=True):
    """A person at a provider. ``email_verified`` and ``auth_time`` (Unix seconds, 0: unknown) are what it says."""

    hidden_fields = frozenset({"tokens"})

    subject: str
    name: str = ""
    email: str = ""
    email_verified: bool = False
    auth_time: int = 0
    tokens: Mapping[str, Any] | None = None


class ProviderAdapter(Protocol):
    """One kind of provider."""

    async def authorization_url(self, provider: IdentityProvider, attempt: Attempt) -> str:
        """Returns the URL to which the browser is sent."""

    async def identify(
        self, provider: IdentityProvider, secret: str | None, attempt: Attempt, answer: Mapping[str, str]
    ) -> UpstreamIdentity:
        """Verifies the answer that the browser brought back. Raises UpstreamError."""


def secret_purpose(provider_id: str) -> str:
    return column_purpose("identity_providers.secret_sealed", provider_id)


def clean_text(value: object, limit: int) -> str:
    """Returns a text of a provider in one line without control characters, cut to the limit; "" if it is no text."""
    if not isinstance(value, str):
        return ""
    return "".join(character for character in value if character.isprintable())[:limit].strip()


def unchanged_address(value: object) -> str:
    """Returns the e-mail address of a provider, or "" if it would have to be changed: then it would be another one."""
    return value if isinstance(value, str) and value == clean_text(value, MAX_EMAIL) else ""


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
