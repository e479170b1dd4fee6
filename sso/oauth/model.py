"""The data types of OAuth: clients, authorization requests, and the contents of issued tokens."""

import re
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from sso.core.hidden_fields import RecordWithHiddenFields
from sso.oauth.clients.profiles import RULES, Profile, ProfileRules
from sso.oauth.clients.redirect_uris import Redirect
from sso.oauth.tokens.claims import scopes_of_requested_claims

CLIENT_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# A client may have the address of its metadata document as its id. How far the address is valid is checked before it is
# fetched; nothing else is stored.
MAX_DOCUMENT_ID = 512
DOCUMENT_ID = re.compile(rf"https?://[!-~]{{1,{MAX_DOCUMENT_ID}}}", re.ASCII)
# Tokens and responses list scopes in this order.
SCOPES = ("openid", "offline_access", "email", "profile", "trust")
PROMPTS = frozenset({"none", "login", "consent", "select_account"})
GrantType = Literal[
    "authorization_code", "refresh_token", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code"
]
DEVICE_CODE: GrantType = "urn:ietf:params:oauth:grant-type:device_code"
# A client may exchange tokens with its field token_exchange, not with its grant_types.
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name
AccessTokenFormat = Literal["opaque", "jwt"]
# How the answer to an authorization request is sent: in the address of a redirect, or by a form that the browser posts.
ResponseMode = Literal["query", "form_post"]
RESPONSE_MODES: tuple[ResponseMode, ...] = ("query", "form_post")
# The method names of RFC 7591. "" is any method that fits whether the client has a secret.
AuthMethod = Literal["", "client_secret_basic", "client_secret_post", "private_key_jwt", "none"]


class Client(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret_sealed", "second_sealed", "jwks"})

    client_id: str
    name: str
    redirect_hosts: tuple[str, ...]
    redirect_uris: tuple[str, ...]
    profile: Profile
    id_alg: str  # the algorithm of its ID tokens; "": the main keys decide
    consent: bool  # whether users must consent to the scopes
    first_party: bool
    disabled: bool
    secret_sealed: str | None  # the newest secret, encrypted
    second_sealed: str | None  # the one before it, during a rotation
    grant_types: tuple[str, ...] = ("authorization_code", "refresh_token")
    token_endpoint_auth_method: AuthMethod = ""
    origins: tuple[str, ...] = ()  # where its pages in browsers are, besides its redirect URIs
    logo_uri: str = ""
    policy_uri: str = ""
    tos_uri: str = ""
    support_uri: str = ""
    accent: str = ""
    signin_text: str = ""
    jwks: str = ""  # the JSON of its JWK set, "" without one
    secret_expires: datetime | None = None  # None: never
    second_expires: datetime | None = None
    access_token_format: AccessTokenFormat = "opaque"  # noqa: S105 - a format
    application_id: int = 0  # the application that it belongs to; 0: none
    resource_server: bool = False  # it may introspect the tokens of clients of its application
    require_pushed_authorization_requests: bool = False
    dpop_bound_access_tokens: bool = False  # it must prove the possession of a key to get tokens
    token_exchange: bool = False  # it may exchange the tokens of users that it gets for narrower ones
    post_logout_redirect_uris: tuple[str, ...] = ()  # exact; without any, the origins of the redirect URIs count
    backchannel_logout_uri: str = ""
    backchannel_logout_session_required: bool = False
    registered_by: str = ""  # how it registered itself; "": an administrator has added it
    approved: bool = True  # one that waits for the approval of an administrator is disabled
    jwks_uri: str = ""  # where its JWK set is, "" if it is stored here or does not exist

    @property
    def rules(self) -> ProfileRules:
        return RULES[self.profile]

    @property
    def key_source(self) -> str:
        """Its JWK set or the address of it, "" without keys. It changes if other keys authenticate the client."""
        return self.jwks or self.jwks_uri

    @property
    def is_public(self) -> bool:
        """Whether it is a public client (RFC 6749 section 2.1), which has no secret. PKCE protects its codes."""
        has_secret = self.secret_sealed is not None
        return self.rules.is_standard and not has_secret and self.token_endpoint_auth_method in ("", "none")

    @property
    def client_secret_expires_at(self) -> int:
        """When its newest secret ends, as in RFC 7591: Unix seconds, 0 for never."""
        return expiry_seconds(self.secret_expires)

    @property
    def title(self) -> str:
        return self.name or self.client_id

    @classmethod
    def from_row(cls, row: Any) -> "Client":
        values: list[Any] = [tuple(value) if type(value) is list else value for value in _CLIENT(row)]
        return cls(*values)


def is_client_id(text: str) -> bool:
    """Returns whether the text has the form of a client's id: a name, or the address of a metadata document."""
    return (CLIENT_ID.fullmatch(text) or DOCUMENT_ID.fullmatch(text)) is not None


def expiry_seconds(expires: datetime | None) -> int:
    """Returns the end of a secret as ``client_secret_expires_at`` (RFC 7591): Unix seconds, 0 for never."""
    return int(expires.timestamp()) if expires else 0


_CLIENT = itemgetter(*Client.__struct_fields__)


class AuthorizationRequest(Struct, frozen=True):
    """A validated authorization request."""

    client: Client
    redirect: Redirect
    scopes: tuple[str, ...]
    state: bytes | None = None
    nonce: str | None = None
    challenge: str | None = None
    prompts: frozenset[str] = frozenset()
    max_age: int | None = None
    login_hint: str = ""
    sub: str | None = None  # the user of id_token_hint, who must be the one that signs in
    ui_locales: str = ""
    acr_values: tuple[str, ...] = ()
    response_mode: ResponseMode = "query"
    dpop_jkt: str | None = None  # the thumbprint of the key that must redeem the code
    resources: tuple[str, ...] = ()  # the resource servers that the access tokens are for
    claims: str = ""  # the claims about the user that are requested one by one, as JSON
    # The version of the client if it was read for an earlier HTTP request: a statement must check it.
    client_version: str | None = None

    @property
    def disclosed_scopes(self) -> tuple[str, ...]:
        """The scopes that users are asked for: also those of claims that are requested one by one."""
        requested = scopes_of_requested_claims(self.claims)
        return tuple(scope for scope in SCOPES if scope in self.scopes or scope in requested)


class PendingAuthorization(Struct, frozen=True):
    """A stored authorization request that waits for the user to sign in or to consent (the OAuth session)."""

    id: str
    request: AuthorizationRequest
    created: datetime
    expires: datetime
    login_after: datetime | None  # only a session that began later is accepted


class TokenRestrictions(NamedTuple):
    """What a token request says about its access token."""

    dpop_jkt: str | None = None  # the thumbprint of the key that it is bound to
    resources: tuple[str, ...] = ()  # the resource servers that it is for; none: the grant names them
    scopes: tuple[str, ...] = ()  # some of those of the grant; none: all of them

    @property
    def resource_text(self) -> str | None:
        return " ".join(self.resources) if self.resources else None

    @property
    def scope_text(self) -> str | None:
        return " ".join(self.scopes) if self.scopes else None

    def grant_jkt(self, client: Client) -> str | None:
        """Returns the key that refresh tokens are bound to, too, unless the client authenticates (RFC 9449 section 5)
        and its profile does not demand it."""
        return self.dpop_jkt if client.is_public or client.rules.binds_refresh_tokens else None


UNRESTRICTED = TokenRestrictions()


class IssuedTokens(NamedTuple):
    """The contents of new tokens, read by the statement that issued them. Times come from the database."""

    grant_id: str
    client_id: str
    profile: Profile
    id_alg: str
    access_token_format: AccessTokenFormat
    user_id: str
    login: str
    nick: str
    lang: str
    email_verified: bool
    updated_at: int
    scopes: Sequence[str]
    nonce: str | None
    auth_time: int
    auth: str
    sid: str | None  # the browser session; None for a grant of an older release
    dpop_jkt: str | None
    resources: Sequence[str]
    claims: str
    now: int
    issued_at: int  # before ``now`` if a repeated request gets the same tokens
    access_exp: int
    # The grant's current refresh token; None without the scope offline_access.
    current_token_id: str | None
    current_token_issued: int | None
    current_token_exp: int | None

    @classmethod
    def from_row(cls, row: Any) -> "IssuedTokens":
        return cls._make(_ISSUED(row))


_ISSUED = itemgetter(*IssuedTokens._fields)


class AccessToken(NamedTuple):
    """A valid access token: its user, client and scopes."""

    user_id: str
    login: str
    nick: str
    lang: str
    email_verified: bool
    phone_verified: bool
    updated_at: int
    valid_from: int
    scopes: Sequence[str]
    client_id: str
    profile: Profile
    first_party: bool
    is_registered: bool  # its client registered itself
    exp: int
    now: int
    auth_time: int
    auth: str
    is_of_device: bool  # it was issued for a device code
    dpop_jkt: str | None
    resources: Sequence[str]
    act: Sequence[str]  # the clients that have exchanged it, the last one first
    claims: str

    @classmethod
    def from_row(cls, row: Any) -> "AccessToken":
        return cls._make(_ACCESS(row))


_ACCESS = itemgetter(*AccessToken._fields)
