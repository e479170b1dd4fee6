"""Which attributes of a client fit together, and what a client that registered itself may have. Pure."""

from typing import Any

import orjson

from sso.core.field_errors import FieldError
from sso.db.transaction import Row
from sso.oauth.clients import branding
from sso.oauth.clients.profiles import RULES
from sso.oauth.clients.record import ClientChanges
from sso.oauth.model import DEVICE_CODE

WITHOUT_SECRET = ("none", "private_key_jwt")
# What a client that registered itself must be: users are told that it is a third party.
REGISTERED_GRANT_TYPES = ("authorization_code", "refresh_token")
_REGISTERED: dict[str, Any] = {"profile": "oidc", "consent": True, "first_party": False, "resource_server": False}
_REGISTERED |= {"token_exchange": False}


def check_attributes(changes: ClientChanges, row: dict[str, Any]) -> None:
    """Raises FieldError if attributes of the client, which has these values after the change, contradict each other."""
    if not branding.has_own_logo(row):
        raise FieldError(("logo_uri",), branding.EXPECTED_LOGO)
    rules, method, has_secret = RULES[row["profile"]], row["token_endpoint_auth_method"], row["secret_sealed"]
    if method and not rules.is_standard:
        raise FieldError(("token_endpoint_auth_method",), "needs the profile oidc or fapi2")
    if method in WITHOUT_SECRET and has_secret:
        raise FieldError(("token_endpoint_auth_method",), f"with {method} the client has no client_secret")
    if method == "private_key_jwt" and not (row["jwks"] or row["jwks_uri"]):
        raise FieldError(("jwks",), "is required for private_key_jwt, or jwks_uri")
    if rules.has_exact_redirect_uris and row["redirect_hosts"]:
        raise FieldError(("redirect_hosts",), f"must be empty with the profile {row['profile']}, which has exact URIs")
    if DEVICE_CODE in row["grant_types"] and not rules.allows_devices:
        raise FieldError(("grant_types",), f"{DEVICE_CODE} needs the profile oidc")
    if row["backchannel_logout_session_required"] and not (rules.is_standard and row["backchannel_logout_uri"]):
        raise FieldError(
            ("backchannel_logout_session_required",), "needs the profile oidc or fapi2, and backchannel_logout_uri"
        )
    _check_service(row)
    _check_registered(row)
    is_public = not has_secret and method != "private_key_jwt"
    if is_public and (method.startswith("client_secret") or changes.public is False):
        # Without a secret it would be a public client, which does not authenticate.
        raise FieldError(("client_secret",), "is required for a client that is not public")
    if changes.client_secret_expires_at and not has_secret:
        raise FieldError(("client_secret_expires_at",), "the client has no client_secret")
    if changes.public and not (is_public and rules.is_standard):
        raise FieldError(("public",), "needs the profile oidc, and neither client_secret nor private_key_jwt")


def _check_service(row: dict[str, Any]) -> None:
    """Raises FieldError if a service client, a resource server or one that exchanges tokens lacks something."""
    has_keys = row["secret_sealed"] is not None or row["jwks"] or row["jwks_uri"]
    has_credentials = RULES[row["profile"]].is_standard and has_keys
    if row["token_exchange"] and not has_credentials:
        raise FieldError(("token_exchange",), "needs the profile oidc, and client_secret, jwks or jwks_uri")
    is_service = "client_credentials" in row["grant_types"]
    if not is_service and not row["resource_server"]:
        return
    field, needs = ("grant_types", "client_credentials needs") if is_service else ("resource_server", "needs")
    if not has_credentials:
        raise FieldError((field,), f"{needs} the profile oidc, and client_secret, jwks or jwks_uri")
    if not row["application_id"]:
        raise FieldError((field,), f"{needs} application_id")


def approval_values(values: dict[str, Any], old: Row | None) -> dict[str, Any]:
    """Returns the columns that follow from ``approved``.

    A client that is not approved is disabled, which every endpoint checks already. The approval enables it.
    """
    if values["approved"]:
        waited = old is not None and not old["approved"]
        return {"disabled": values.get("disabled", False)} if waited else {}
    return {"disabled": values.get("disabled", True)}


def _check_registered(row: dict[str, Any]) -> None:
    """Raises FieldError if a client is enabled before it is approved, or one that registered itself gets more rights
    than a third party may have."""
    if not row["approved"] and not row["disabled"]:
        raise FieldError(("disabled",), "the client waits for an approval: expected approved to be true as well")
    if not row["registered_by"]:
        return
    for name, value in _REGISTERED.items():
        if row[name] != value:
            raise FieldError((name,), f"must be {orjson.dumps(value).decode()} for a client that registered itself")
    if not set(row["grant_types"]) <= set(REGISTERED_GRANT_TYPES):
        names = " and ".join(REGISTERED_GRANT_TYPES)
        raise FieldError(("grant_types",), f"must be {names} for a client that registered itself")
