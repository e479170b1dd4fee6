"""The fields of an OAuth client, as administrators see and change them in the management API and in documents."""

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field

from sso.core.ids import MAX_APPLICATION_ID
from sso.core.keys import UnusableKey
from sso.core.moments import rfc3339
from sso.core.outgoing_url import is_outgoing_url
from sso.core.records import Host, RecordModel, Text, matching, without_control_characters
from sso.db.transaction import Row
from sso.oauth.clients import branding
from sso.oauth.clients.assertions import stored_jwks
from sso.oauth.clients.profiles import RULES, Profile
from sso.oauth.clients.redirect_uris import browser_origin, is_redirect_uri
from sso.oauth.model import CLIENT_ID, AccessTokenFormat, AuthMethod, Client, GrantType, expiry_seconds

MAX_JWKS = 16 * 1024
MAX_EXPIRY = 253_402_300_799  # the last second of the year 9999
ALWAYS_EXPORTED = (
    "client_id", "name", "redirect_hosts", "redirect_uris", "profile", "id_alg", "consent", "first_party",
    "grant_types", "access_token_format",
)  # fmt: skip
EXPORTED_IF_SET = (
    "disabled", "token_endpoint_auth_method", "post_logout_redirect_uris", "origins", "logo_uri", "policy_uri",
    "tos_uri", "support_uri", "accent", "signin_text", "application_id", "resource_server", "backchannel_logout_uri",
    "backchannel_logout_session_required", "require_pushed_authorization_requests", "dpop_bound_access_tokens",
    "token_exchange",
    "jwks_uri",
)  # fmt: skip


def _absolute_uri(uri: str) -> str:
    if not is_redirect_uri(uri, (), (uri,), allow_http=True):
        raise ValueError("must be an absolute http or https URI without fragment and user-info")
    return uri


def _outgoing_uri(uri: str) -> str:
    if uri and not is_outgoing_url(uri, allow_http=True):
        raise ValueError("must be an https URI without fragment and user-info (http for loopback addresses only)")
    return uri


def _origin(text: str) -> str:
    if not text or browser_origin(text) != text:
        raise ValueError("must be an origin such as https://app.example.com, in lower case and without a path")
    return text


def _usable_jwks(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = stored_jwks(value)
    except UnusableKey as error:
        raise ValueError(str(error)) from None
    if len(text) > MAX_JWKS:
        raise ValueError(f"must have at most {MAX_JWKS} characters")
    return value


Uri = Annotated[str, AfterValidator(_absolute_uri)]
Origin = Annotated[str, AfterValidator(_origin)]
Link = Annotated[str, AfterValidator(branding.check_link)]
ClientId = Annotated[str, matching(CLIENT_ID, "1 to 64 letters, digits, dots, dashes, underscores")]


class ClientChanges(RecordModel):
    """The fields of a client, each of which may be missing."""

    client_id: ClientId | None = None
    client_secret: (
        Annotated[str, Field(min_length=16, max_length=512), AfterValidator(without_control_characters)] | None
    ) = None
    client_secret_expires_at: Annotated[int, Field(ge=0, le=MAX_EXPIRY)] | None = None  # Unix seconds; 0: never
    name: Text | None = None
    redirect_hosts: list[Host] | None = None
    redirect_uris: list[Text] | None = None
    profile: Profile | None = None
    id_alg: Literal["", "ES256", "EdDSA"] | None = None
    public: bool | None = None  # false: the client has a secret, which exports leave out
    consent: bool | None = None
    first_party: bool | None = None
    disabled: bool | None = None
    grant_types: Annotated[list[GrantType], Field(min_length=1)] | None = None
    token_endpoint_auth_method: AuthMethod | None = None
    post_logout_redirect_uris: list[Uri] | None = None
    backchannel_logout_uri: Annotated[str, AfterValidator(_outgoing_uri)] | None = None
    backchannel_logout_session_required: bool | None = None
    origins: list[Origin] | None = None
    logo_uri: Annotated[str, AfterValidator(branding.check_logo_uri)] | None = None
    policy_uri: Link | None = None
    tos_uri: Link | None = None
    support_uri: Link | None = None
    accent: Annotated[str, AfterValidator(branding.check_accent)] | None = None
    signin_text: Annotated[str, AfterValidator(branding.check_signin_text)] | None = None
    application_id: Annotated[int, Field(ge=0, le=MAX_APPLICATION_ID)] | None = None  # 0: none
    resource_server: bool | None = None
    require_pushed_authorization_requests: bool | None = None
    dpop_bound_access_tokens: bool | None = None
    token_exchange: bool | None = None
    access_token_format: AccessTokenFormat | None = None
    jwks: Annotated[dict[str, Any], AfterValidator(_usable_jwks)] | None = None
    jwks_uri: Annotated[str, AfterValidator(_outgoing_uri)] | None = None


class ClientRecord(ClientChanges):
    client_id: ClientId


def client_json(row: Row) -> dict[str, Any]:
    """Returns the client without its secrets. The id of a secret changes with each rotation."""
    return {name: row[name] for name in (*ALWAYS_EXPORTED, *EXPORTED_IF_SET)} | {
        "public": Client.from_row(row).is_public,
        "jwks": orjson.loads(row["jwks"]) if row["jwks"] else None,
        "client_secret_expires_at": expiry_seconds(row["secret_expires"]),
        "secrets": secrets_json(row),
        "created": rfc3339(row["created"]),
    }


def secrets_json(row: Row) -> list[dict[str, Any]]:
    columns = (("secret_sealed", "secret_expires"), ("second_sealed", "second_expires"))
    return [
        {
            "id": hashlib.sha256(row[sealed].encode()).hexdigest()[:12],
            "expires_at": expiry_seconds(row[expires]),  # Unix seconds; 0: never
        }
        for sealed, expires in columns
        if row[sealed] is not None
    ]


def exported_client(row: Row) -> dict[str, Any]:
    """Returns the record for a document, without secrets and without fields that have no value."""
    fields = {name: row[name] for name in ALWAYS_EXPORTED} | {name: row[name] for name in EXPORTED_IF_SET if row[name]}
    if row["secret_expires"]:
        fields["client_secret_expires_at"] = expiry_seconds(row["secret_expires"])
    if row["jwks"]:
        fields["jwks"] = orjson.loads(row["jwks"])
    return fields | ({"public": Client.from_row(row).is_public} if RULES[row["profile"]].is_standard else {})
