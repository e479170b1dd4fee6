"""OAuth clients."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.encryption import Keyring
from sso.core.ids import MAX_APPLICATION_ID
from sso.core.keys import UnusableKey
from sso.core.outgoing_url import is_outgoing_url
from sso.db.row_statements import insert_statement, update_statement
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.oauth.clients import branding as client_branding
from sso.oauth.clients.assertions import stored_jwks
from sso.oauth.clients.redirect_uris import browser_origin, is_redirect_uri
from sso.oauth.clients.store import revoke_grants, revoke_grants_at_removed_uris, secret_purpose
from sso.oauth.model import (
    CLIENT_ID,
    DEVICE_CODE,
    AccessTokenFormat,
    AuthMethod,
    Client,
    GrantType,
    Profile,
    expiry_seconds,
)
from sso.state.location import DocumentError, with_location
from sso.state.summary import CHANGED, CREATED, UNCHANGED
from sso.state.values import AccountPart, Host, Text, matching, without_control_characters

_LOCK = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id FOR UPDATE")
_ALL = Statement("SELECT * FROM oauth_clients ORDER BY client_id")
MAX_JWKS = 16 * 1024
MAX_EXPIRY = 253_402_300_799  # the last second of the year 9999
_AUDIT_NAMES = {"secret_sealed": "client_secret", "second_sealed": None}
ALWAYS_EXPORTED = (
    "client_id", "name", "redirect_hosts", "redirect_uris", "profile", "id_alg", "consent", "first_party",
    "grant_types", "access_token_format",
)  # fmt: skip
EXPORTED_IF_SET = (
    "disabled",
    "token_endpoint_auth_method",
    "post_logout_redirect_uris",
    "origins",
    "logo_uri",
    "policy_uri",
    "tos_uri",
    "support_uri",
    "accent",
    "signin_text",
    "application_id",
    "resource_server",
    "backchannel_logout_uri",
    "backchannel_logout_session_required",
    "require_pushed_authorization_requests",
    "dpop_bound_access_tokens",
)


def _absolute_uri(uri: str) -> str:
    if not is_redirect_uri(uri, (), (uri,), allow_http=True):
        raise ValueError("must be an absolute http or https URI without fragment and user-info")
    return uri


def _logout_uri(uri: str) -> str:
    if uri and not is_outgoing_url(uri, allow_http=True):
        raise ValueError("must be an https URI without fragment and user-info (http for loopback addresses only)")
    return uri


def _origin(text: str) -> str:
    if not text or browser_origin(text) != text:
        raise ValueError("must be an origin such as https://app.example.com, in lower case and without a path")
    return text


Uri = Annotated[str, AfterValidator(_absolute_uri)]
Origin = Annotated[str, AfterValidator(_origin)]
Link = Annotated[str, AfterValidator(client_branding.check_link)]


def _usable_jwks(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = stored_jwks(value)
    except UnusableKey as error:
        raise ValueError(str(error)) from None
    if len(text) > MAX_JWKS:
        raise ValueError(f"must have at most {MAX_JWKS} characters")
    return value


ClientId = Annotated[str, matching(CLIENT_ID, "1 to 64 letters, digits, dots, dashes, underscores")]


class ClientChanges(AccountPart):
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
    backchannel_logout_uri: Annotated[str, AfterValidator(_logout_uri)] | None = None
    backchannel_logout_session_required: bool | None = None
    origins: list[Origin] | None = None
    logo_uri: Annotated[str, AfterValidator(client_branding.check_logo_uri)] | None = None
    policy_uri: Link | None = None
    tos_uri: Link | None = None
    support_uri: Link | None = None
    accent: Annotated[str, AfterValidator(client_branding.check_accent)] | None = None
    signin_text: Annotated[str, AfterValidator(client_branding.check_signin_text)] | None = None
    application_id: Annotated[int, Field(ge=0, le=MAX_APPLICATION_ID)] | None = None  # 0: none
    resource_server: bool | None = None
    require_pushed_authorization_requests: bool | None = None
    dpop_bound_access_tokens: bool | None = None
    access_token_format: AccessTokenFormat | None = None
    jwks: Annotated[dict[str, Any], AfterValidator(_usable_jwks)] | None = None


class ClientPart(ClientChanges):
    client_id: ClientId


async def apply(tx: Transaction, actor: AuditActor, keyring: Keyring, location: str, part: ClientPart) -> str:
    """Creates or changes the client. Returns which of both it did, or that nothing changed."""
    old = await tx.row(_LOCK, client_id=part.client_id)
    values = _values(part, keyring, old)
    if problem := _contradiction(part, {**(old or _NEW), **values}):
        raise DocumentError(with_location(location, problem))
    if old is None:
        statement = insert_statement("oauth_clients", ("client_id", *values))
        await tx.value(statement, client_id=part.client_id, **values)
        await trail.write(tx, actor, "client.create", part.client_id, None, _for_audit(values))
        return CREATED
    changed = {name: value for name, value in values.items() if old[name] != value}
    if not changed:
        return UNCHANGED
    await tx.value(update_statement("oauth_clients", "client_id", changed), client_id=part.client_id, **changed)
    before = {name: old[name] for name in changed}
    await trail.write(tx, actor, "client.save", part.client_id, _for_audit(before), _for_audit(changed))
    if changed.get("secret_sealed"):
        await record_changes(tx, [Change(ChangeType.CLIENT_SECRET_ROTATED, data={"client_id": part.client_id})])
    if changed.get("disabled"):
        await revoke_grants(tx, part.client_id)
    elif changed.keys() & {"redirect_hosts", "redirect_uris"}:
        await revoke_grants_at_removed_uris(tx, Client.from_row(old), Client.from_row({**old, **changed}))
    return CHANGED


# The values of a new client that the checks need.
_NEW: dict[str, Any] = {"profile": "strict", "token_endpoint_auth_method": "", "secret_sealed": None, "jwks": ""}
_NEW |= {"application_id": 0, "resource_server": False, "grant_types": []}
_NEW |= {"backchannel_logout_uri": "", "backchannel_logout_session_required": False}
_NEW |= {"logo_uri": "", "redirect_hosts": [], "redirect_uris": []}
_NO_SECRETS = {"secret_sealed": None, "second_sealed": None, "secret_expires": None, "second_expires": None}
_WITHOUT_SECRET = ("none", "private_key_jwt")


def _values(part: ClientPart, keyring: Keyring, old: Any) -> dict[str, Any]:
    """Returns the columns that the document sets."""
    values = part.model_dump(
        exclude_none=True, exclude={"client_id", "client_secret", "client_secret_expires_at", "public"}
    )
    if "grant_types" in values:
        values["grant_types"] = list(dict.fromkeys(values["grant_types"]))
    purpose = secret_purpose(part.client_id)
    if part.client_secret is not None:
        unchanged = (
            old and old["secret_sealed"] and keyring.decrypt(purpose, old["secret_sealed"]) == part.client_secret
        )
        if not unchanged:
            values |= _NO_SECRETS | {"secret_sealed": keyring.encrypt(purpose, part.client_secret)}
    elif part.token_endpoint_auth_method in _WITHOUT_SECRET:
        values |= _NO_SECRETS
    if part.client_secret_expires_at is not None:
        values |= _expiry(part.client_secret_expires_at, old, values)
    if part.jwks is not None:
        values["jwks"] = stored_jwks(part.jwks)
    return values


def _expiry(expires_at: int, old: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the end of the newest secret; nothing if it is the present one, of which an export has whole seconds."""
    if old and "secret_expires" not in values and expires_at == expiry_seconds(old["secret_expires"]):
        return {}
    return {"secret_expires": datetime.fromtimestamp(expires_at, UTC) if expires_at else None}


def _contradiction(part: ClientPart, row: dict[str, Any]) -> str | None:
    """Returns which attributes of the client contradict each other."""
    if not client_branding.has_own_logo(row):
        return f"logo_uri: {client_branding.EXPECTED_LOGO}"
    method = row["token_endpoint_auth_method"]
    if method and row["profile"] != "oidc":
        return "token_endpoint_auth_method: needs the profile oidc"
    if method in _WITHOUT_SECRET and row["secret_sealed"] is not None:
        return f"token_endpoint_auth_method: with {method} the client has no client_secret"
    if method == "private_key_jwt" and not row["jwks"]:
        return "jwks: is required for private_key_jwt"
    if DEVICE_CODE in row["grant_types"] and row["profile"] != "oidc":
        return f"grant_types: {DEVICE_CODE} needs the profile oidc"
    if row["backchannel_logout_session_required"] and (row["profile"] != "oidc" or not row["backchannel_logout_uri"]):
        return "backchannel_logout_session_required: needs the profile oidc and backchannel_logout_uri"
    if problem := _missing_for_services(row):
        return problem
    is_public = row["secret_sealed"] is None and method != "private_key_jwt"
    if is_public and (method.startswith("client_secret") or part.public is False):
        # Without a secret it would be a public client, which does not authenticate.
        return "client_secret: is required for a client that is not public"
    if part.client_secret_expires_at and row["secret_sealed"] is None:
        return "client_secret_expires_at: the client has no client_secret"
    return None


def _missing_for_services(row: dict[str, Any]) -> str | None:
    """Returns what a service client or a resource server lacks."""
    is_service = "client_credentials" in row["grant_types"]
    if not is_service and not row["resource_server"]:
        return None
    field = "grant_types: client_credentials" if is_service else "resource_server:"
    if row["profile"] != "oidc" or (row["secret_sealed"] is None and not row["jwks"]):
        return f"{field} needs the profile oidc, and client_secret or jwks"
    return None if row["application_id"] else f"{field} needs application_id"


def _for_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns under their names in the audit trail, which blanks the secrets."""
    renamed = {_AUDIT_NAMES.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in renamed.items() if name is not None}


async def export(tx: Transaction) -> list[dict[str, Any]]:
    return [_exported(row) for row in await tx.rows(_ALL)]


def _exported(row: Any) -> dict[str, Any]:
    fields = {name: row[name] for name in ALWAYS_EXPORTED} | {name: row[name] for name in EXPORTED_IF_SET if row[name]}
    if row["secret_expires"]:
        fields["client_secret_expires_at"] = expiry_seconds(row["secret_expires"])
    if row["jwks"]:
        fields["jwks"] = orjson.loads(row["jwks"])
    return fields | ({"public": Client.from_row(row).is_public} if row["profile"] == "oidc" else {})
