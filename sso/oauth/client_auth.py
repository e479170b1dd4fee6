"""Client authentication: what a request brings as proof, and whether it is one. Pure."""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from sso.oauth.errors import InvalidClient, InvalidRequest
from sso.oauth.model import CLIENT_ID, Client

BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*) *", re.ASCII)
BASIC = re.compile(r"[Bb][Aa][Ss][Ii][Cc] +([A-Za-z0-9+/]+={0,2}) *", re.ASCII)
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


@dataclass(frozen=True)
class ClientCredentials:
    """At most one way of authentication; ``client_id`` is what the request says, "" if it says nothing."""

    client_id: str = ""
    bearer: str = ""
    secrets: tuple[str, ...] = ()  # several readings of one
    scheme: str = "Bearer"

    @property
    def way(self) -> str:
        if self.bearer:
            return "bearer"
        return "basic" if self.scheme == "Basic" else "body" if self.secrets else "none"


def client_credentials(authorization: Sequence[str], client_id: str, client_secret: str) -> ClientCredentials:
    """From the ``Authorization`` headers and the body."""
    if len(authorization) > 1:
        raise InvalidRequest("more than one Authorization header")
    if client_id and not CLIENT_ID.fullmatch(client_id):
        raise InvalidClient
    header = authorization[0].strip() if authorization else ""
    if header and client_secret:
        raise InvalidRequest("more than one way of client authentication")
    if not header:
        return ClientCredentials(client_id, secrets=(client_secret,) if client_secret else ())
    if found := BEARER.fullmatch(header):
        return ClientCredentials(client_id, bearer=found[1])
    if found := BASIC.fullmatch(header):
        return _basic(found[1], client_id)
    raise InvalidClient


def _basic(encoded: str, client_id: str) -> ClientCredentials:
    try:
        name, colon, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        raise InvalidClient("Basic") from None
    # RFC 6749 section 2.3.1 has both encoded as in a form, which not every library does.
    name = unquote_plus(name)
    if not colon or not secret or not CLIENT_ID.fullmatch(name) or client_id not in ("", name):
        raise InvalidClient("Basic")
    return ClientCredentials(name, secrets=tuple({secret: None, unquote_plus(secret): None}), scheme="Basic")


def bearer_of(authorization: Sequence[str]) -> str:
    """The token of a ``Bearer`` header, or "" for anything else."""
    found = BEARER.fullmatch(authorization[0].strip()) if len(authorization) == 1 else None
    return found[1] if found else ""


def proof(
    client: Client,
    secrets: Sequence[tuple[str, str]],
    given: ClientCredentials,
    redirect_uri: str,
    *,
    strict_ways: frozenset[str] = frozenset({"bearer"}),
) -> str | None:
    """The sealed form of the secret that was proved; "" for a public client, which has none to prove; else None.

    ``strict_ways`` are open to a client that keeps to the specification; standard ones have them all. Compared in
    constant time, as bytes: text outside ASCII must not be an error.
    """
    if client.disabled or given.client_id not in ("", client.client_id):
        return None
    if client.is_public:
        return "" if given.client_id and not given.bearer and not given.secrets else None
    if client.profile == "strict" and given.way not in strict_ways:
        return None
    found = None
    for secret, sealed in secrets:
        if given.bearer:
            good = hmac.compare_digest(sha1_bearer(redirect_uri, secret), given.bearer.lower().encode())
        else:
            # Over digests: a difference in length is nobody's business either.
            expected = hashlib.sha256(secret.encode()).digest()
            good = any(hmac.compare_digest(expected, hashlib.sha256(text.encode()).digest()) for text in given.secrets)
        found = sealed if good else found
    return found


def sha1_bearer(redirect_uri: str, client_secret: str) -> bytes:
    """§4.2: the hash of redirect_uri immediately followed by client_secret."""
    return hashlib.sha1(f"{redirect_uri}{client_secret}".encode()).hexdigest().encode()  # noqa: S324 - the spec's


def verifies(challenge: str | None, verifier: str) -> bool:
    """PKCE S256. A verifier without a challenge is refused: somebody has taken the challenge out."""
    if challenge is None or not verifier:
        return challenge is None and not verifier
    made = challenge_of(verifier)
    return made is not None and hmac.compare_digest(made.encode(), challenge.encode())


def challenge_of(verifier: str) -> str | None:
    """The one challenge that it answers, by S256; None for what is no verifier."""
    if not VERIFIER.fullmatch(verifier):
        return None
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
