"""The metadata of clients that register themselves (RFC 7591): as they send it, and as the fields of a client. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, ValidationError

from sso.core.field_errors import FieldError
from sso.core.urls import split_url
from sso.db.transaction import Row
from sso.oauth.clients.attribute_rules import REGISTERED_GRANT_TYPES
from sso.oauth.clients.record import ClientChanges
from sso.oauth.clients.redirect_uris import LOOPBACK, browser_origin
from sso.oauth.model import SCOPES, Client
from sso.oauth.registration.names import check_name
from sso.web.request_model import JsonObject, RequestModel, field_error

MAX_REDIRECT_URIS = 20
# The names of RFC 7591 and OpenID Connect for fields of clients; the others have the same names.
_NAMES = {"name": "client_name", "id_alg": "id_token_signed_response_alg"}
# What users see, and where they are sent. An administrator has approved these values.
APPROVED_FIELDS = ("name", "redirect_uris", "post_logout_redirect_uris", "policy_uri", "tos_uri")

GrantType = Literal["authorization_code", "refresh_token"]
Uris = Annotated[list[str], Field(max_length=MAX_REDIRECT_URIS)]


def _https(url: str) -> str:
    if not url.startswith("https://"):
        raise ValueError("must be a URL that begins with https://")
    return url


def _no_address(value: str | None) -> None:
    if value is not None:
        raise ValueError("expected none: send the keys in jwks")


class ClientMetadata(RequestModel):
    """Other members are ignored, as RFC 7591 demands. Logos are, too: nothing tells whose logo it is."""

    redirect_uris: Annotated[list[str], Field(min_length=1, max_length=MAX_REDIRECT_URIS)]
    client_name: Annotated[str, AfterValidator(check_name)] | None = None
    policy_uri: Annotated[str, AfterValidator(_https)] = ""
    tos_uri: Annotated[str, AfterValidator(_https)] = ""
    grant_types: list[GrantType] = Field(default=["authorization_code"])
    response_types: list[Literal["code"]] = Field(default=["code"])
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post", "private_key_jwt", "none"] = (
        "client_secret_basic"  # noqa: S105 - a method
    )
    jwks: JsonObject | None = None
    # A stranger must not choose an address that this service asks for keys again and again.
    jwks_uri: Annotated[str | None, AfterValidator(_no_address)] = None
    post_logout_redirect_uris: Uris = Field(default_factory=list)
    id_token_signed_response_alg: Literal["RS256", "ES256", "EdDSA"] = "RS256"  # noqa: S105 - an algorithm
    require_pushed_authorization_requests: bool = False
    dpop_bound_access_tokens: bool = False
    # Of a client that is registered: it sends back what it got.
    client_id: str | None = None
    client_secret: str | None = None

    @property
    def uses_secret(self) -> bool:
        return self.token_endpoint_auth_method.startswith("client_secret")


def client_changes(metadata: ClientMetadata, own_origin: str) -> ClientChanges:
    """Returns the fields of the client. Raises FieldError with the names of RFC 7591."""
    if "authorization_code" not in metadata.grant_types:
        raise FieldError(("grant_types",), f"must be some of {', '.join(REGISTERED_GRANT_TYPES)}, the first included")
    uris = list(dict.fromkeys(metadata.redirect_uris))
    for index, uri in enumerate(uris):
        if browser_origin(uri) == own_origin:
            raise FieldError(("redirect_uris", index), "must not be an address of this service")
    algorithm = metadata.id_token_signed_response_alg
    fields: dict[str, Any] = {
        "name": metadata.client_name or _host(uris[0]),
        "redirect_uris": uris,
        "profile": "oidc",
        "consent": True,
        "grant_types": list(dict.fromkeys(metadata.grant_types)),
        "token_endpoint_auth_method": metadata.token_endpoint_auth_method,
        "post_logout_redirect_uris": metadata.post_logout_redirect_uris,
        "policy_uri": metadata.policy_uri,
        "tos_uri": metadata.tos_uri,
        "id_alg": "" if algorithm == "RS256" else algorithm,
        "require_pushed_authorization_requests": metadata.require_pushed_authorization_requests,
        "dpop_bound_access_tokens": metadata.dpop_bound_access_tokens,
        "jwks": metadata.jwks or {"keys": []},
    }
    try:
        return ClientChanges.model_validate(fields)
    except ValidationError as error:
        raise with_metadata_names(field_error(error)) from None


def client_metadata(row: Row, id_token_algorithm: str) -> dict[str, Any]:
    """Returns the metadata of a registered client, which may send all of it back to change some."""
    client = Client.from_row(row)
    metadata = {
        "client_id": client.client_id,
        "client_id_issued_at": int(row["created"].timestamp()),
        "redirect_uris": list(client.redirect_uris),
        "post_logout_redirect_uris": list(client.post_logout_redirect_uris),
        "grant_types": list(client.grant_types),
        "response_types": ["code"],
        "token_endpoint_auth_method": client.token_endpoint_auth_method,
        "id_token_signed_response_alg": id_token_algorithm,
        "require_pushed_authorization_requests": client.require_pushed_authorization_requests,
        "dpop_bound_access_tokens": client.dpop_bound_access_tokens,
        "scope": " ".join(SCOPES),
        "approved": client.approved,
    }
    optional = {
        "client_name": client.name,
        "policy_uri": client.policy_uri,
        "tos_uri": client.tos_uri,
        "jwks": orjson.loads(client.jwks) if client.jwks else None,
    }
    return metadata | {name: value for name, value in optional.items() if value}


def with_metadata_names(error: FieldError) -> FieldError:
    """Returns the error about a field of a client under the name that the client knows."""
    first, *others = error.path or ("",)
    path = (_NAMES.get(str(first), first), *others) if error.path else ()
    return FieldError(path, error.expected, others=tuple(with_metadata_names(other) for other in error.others))


@contextmanager
def metadata_names() -> Iterator[None]:
    try:
        yield
    except FieldError as error:
        raise with_metadata_names(error) from None


def _host(uri: str) -> str:
    parts = split_url(uri)
    host = (parts.hostname if parts else None) or ""  # a malformed URI is refused with the redirect URIs
    return "" if host in LOOPBACK or not host.isascii() else host[:64]
