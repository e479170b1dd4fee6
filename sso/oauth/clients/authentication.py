"""Client authentication: reads the credentials of a request and compares them with a client's secrets. Pure."""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from urllib.parse import unquote_plus

from msgspec import Struct

from sso.oauth.errors import InvalidClient, InvalidRequest
from sso.oauth.model import Client, is_client_id

BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*) *", re.ASCII)
BASIC = re.compile(r"[Bb][Aa][Ss][Ii][Cc] +([A-Za-z0-9+/]+={0,2}) *", re.ASCII)

STRICT_METHODS = frozenset({"bearer"})  # of strict clients, at most endpoints
# The values of token_endpoint_auth_method that require one method, with its name in ClientCredentials.
_METHODS = {"client_secret_basic": "basic", "client_secret_post": "body", "none": "none"}


class ClientCredentials(Struct, frozen=True):
    """The client credentials of a request. At most one authentication method is used.

    ``client_id`` is "" if the request names no client.
    """

    client_id: str = ""
    bearer: str = ""
    secrets: tuple[str, ...] = ()  # alternative decodings of the one secret that was sent
    scheme: str = "Bearer"
    verified_keys: str = ""  # the JWK set, or its address, with a key of which a valid assertion was signed

    @property
    def method(self) -> str:
        if self.verified_keys:
            return "assertion"
        if self.bearer:
            return "bearer"
        return "basic" if self.scheme == "Basic" else "body" if self.secrets else "none"


def client_credentials(authorization: Sequence[str], client_id: str, client_secret: str) -> ClientCredentials:
    """Reads the credentials from the ``Authorization`` headers and from the fields of the body."""
    if len(authorization) > 1:
        raise InvalidRequest("expected at most one Authorization header")
    if client_id and not is_client_id(client_id):
        raise InvalidClient
    header = authorization[0].strip() if authorization else ""
    if header and client_secret:
        raise InvalidRequest("expected one client authentication method: an Authorization header or client_secret")
    if not header:
        return ClientCredentials(client_id, secrets=(client_secret,) if client_secret else ())
    if match := BEARER.fullmatch(header):
        return ClientCredentials(client_id, bearer=match[1])
    if match := BASIC.fullmatch(header):
        return _basic_credentials(match[1], client_id)
    raise InvalidClient


def _basic_credentials(encoded: str, client_id: str) -> ClientCredentials:
    try:
        name, colon, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        raise InvalidClient("Basic") from None
    # RFC 6749 section 2.3.1 requires form encoding of both parts, which some libraries omit.
    name = unquote_plus(name)
    if not colon or not secret or not is_client_id(name) or client_id not in ("", name):
        raise InvalidClient("Basic")
    return ClientCredentials(name, secrets=tuple({secret: None, unquote_plus(secret): None}), scheme="Basic")


def bearer_token(authorization: Sequence[str]) -> str:
    """Returns the token of a ``Bearer`` header, or "" if there is no such header."""
    match = BEARER.fullmatch(authorization[0].strip()) if len(authorization) == 1 else None
    return match[1] if match else ""


def authenticate_client(
    client: Client,
    secrets: Sequence[tuple[str, str]],
    credentials: ClientCredentials,
    redirect_uri: str,
    *,
    strict_methods: frozenset[str] = STRICT_METHODS,
) -> str | None:
    """Returns the encrypted form of the secret that matches the credentials, or None if authentication fails.

    A public client has no secret: it authenticates by its client_id alone, and the result is "". With private_key_jwt,
    the result is the JWK set of the client, or its address. ``secrets`` are
    pairs of a secret and its encrypted form. A strict client may use the ``strict_methods`` only, an oidc client its
    ``token_endpoint_auth_method`` or, without one, all methods. Secrets are compared in constant time; as bytes,
    because ``compare_digest`` accepts only ASCII text.
    """
    if client.disabled or credentials.client_id not in ("", client.client_id):
        return None
    if client.is_public:
        return "" if credentials.client_id and credentials.method == "none" else None
    if client.token_endpoint_auth_method == "private_key_jwt":  # noqa: S105 - a method
        return client.key_source if credentials.verified_keys == client.key_source else None
    if not client.rules.is_standard and credentials.method not in strict_methods:
        return None
    if (expected_method := _METHODS.get(client.token_endpoint_auth_method)) and credentials.method != expected_method:
        return None
    matched = None
    for secret, sealed in secrets:
        if credentials.bearer:
            equal = hmac.compare_digest(sha1_bearer(redirect_uri, secret), credentials.bearer.lower().encode())
        else:
            # Digests are compared, so that the time does not depend on the length of the secret either.
            expected = hashlib.sha256(secret.encode()).digest()
            equal = any(
                hmac.compare_digest(expected, hashlib.sha256(text.encode()).digest()) for text in credentials.secrets
            )
        matched = sealed if equal else matched
    return matched


def sha1_bearer(redirect_uri: str, client_secret: str) -> bytes:
    """Returns the bearer that authenticates a client (§4.2): the SHA-1 of redirect_uri followed by client_secret."""
    return hashlib.sha1(f"{redirect_uri}{client_secret}".encode()).hexdigest().encode()  # noqa: S324 - the spec's
