"""JWTs that prove the possession of a key, which is in their header (RFC 9449, DPoP).

They are read before anything is known about the sender, so the length of the token and the cost of its key are bounded.
"""

import base64
import hashlib
from functools import lru_cache
from typing import NamedTuple

import orjson

from sso.core.jwk import load_jwk
from sso.core.jwks import PRIVATE_MEMBERS
from sso.core.jwt import SHAPE, Claims, InvalidToken, parse_part, signed_claims
from sso.core.keys import PublicKey, UnusableKey, is_costly, public_jwk

PROOF_JWT = "DPOP+JWT"  # the type of the token in the header, in upper case
MAX_LENGTH = 4096
MAX_HEADER = 1536  # an RSA key of 4,096 bits needs 1,060
# The members that the thumbprint of a key is made of (RFC 7638 section 3.2, RFC 8037 section 2).
_THUMBPRINT_MEMBERS = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}


class ProofKey(NamedTuple):
    key: PublicKey
    thumbprint: str


def verify_proof(token: str) -> tuple[str, Claims]:
    """Returns the thumbprint of the key and the claims of a proof with a valid signature. Raises InvalidToken."""
    header = token.partition(".")[0]
    if len(token) > MAX_LENGTH or len(header) > MAX_HEADER or SHAPE.fullmatch(token) is None:
        raise InvalidToken("not a JWT")
    key, thumbprint = _key_of(header)
    return thumbprint, signed_claims(token, key, PROOF_JWT)


@lru_cache(256)
def _key_of(header: str) -> ProofKey:
    """Returns the key in a header. All proofs of a key usually have the same header, so it is cached."""
    jwk = parse_part(header, "header").get("jwk")
    if not isinstance(jwk, dict) or not PRIVATE_MEMBERS.isdisjoint(jwk):
        raise InvalidToken("jwk: expected a public key")
    try:
        key = load_jwk(jwk)
    except UnusableKey as error:
        raise InvalidToken(f"jwk: {error}") from None
    if is_costly(key):
        raise InvalidToken("jwk: expected an RSA key of at most 4096 bits with an exponent of at most 65537")
    return ProofKey(key, jwk_thumbprint(key))


def jwk_thumbprint(key: PublicKey) -> str:
    """Returns the SHA-256 thumbprint of a key (RFC 7638), whatever the encoding of its numbers was."""
    jwk = public_jwk(key, "")
    members = {name: jwk[name] for name in _THUMBPRINT_MEMBERS[jwk["kty"]]}
    return base64.urlsafe_b64encode(hashlib.sha256(orjson.dumps(members)).digest()).rstrip(b"=").decode()
