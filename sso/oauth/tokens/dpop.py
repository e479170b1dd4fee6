"""DPoP (RFC 9449): a client proves with each request that it has the key to which its tokens are bound.

A proof is valid for a few minutes and works once. Clients of some profiles put a nonce of this service into it.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from sso.core.algorithms import CLIENT_ALGORITHMS
from sso.core.jwk import load_jwk
from sso.core.jwks import PRIVATE_MEMBERS
from sso.core.jwt import SHAPE, Claims, InvalidToken, algorithm_in_header, parse_part, signed_claims
from sso.core.keys import PublicKey, UnusableKey, is_costly, public_jwk
from sso.core.urls import split_url
from sso.db.database import Database
from sso.oauth.clients.profiles import ProfileRules
from sso.oauth.errors import InvalidDpopProof, UseDpopNonce
from sso.oauth.one_time_store import use_jti
from sso.oauth.tokens.dpop_nonces import DpopNonces

PROOF_JWT = "DPOP+JWT"  # the type of the token in the header, in upper case
MAX_LENGTH = 4096
MAX_HEADER = 1536  # an RSA key of 4,096 bits needs 1,060
# The members that the thumbprint of a key is made of (RFC 7638 section 3.2, RFC 8037 section 2).
_THUMBPRINT_MEMBERS = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}

MAX_AGE_S = 300  # the clocks of phones and browsers are not exact, and most clients use no nonce
MAX_AHEAD_S = 60
MAX_JTI = 256
MAX_URI = 2048
AUTHORIZATION = re.compile(r"[Dd][Pp][Oo][Pp] +([A-Za-z0-9._~+/-]+=*) *", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class ProofKey(NamedTuple):
    key: PublicKey
    thumbprint: str


def verify_proof(token: str) -> tuple[str, Claims]:
    """Returns the thumbprint of the key and the claims of a proof with a valid signature. Raises InvalidToken."""
    header = token.partition(".")[0]
    if len(token) > MAX_LENGTH or len(header) > MAX_HEADER or SHAPE.fullmatch(token) is None:
        raise InvalidToken("not a JWT")
    key, thumbprint = _key_of(header)
    return thumbprint, signed_claims(token, key, PROOF_JWT, CLIENT_ALGORITHMS)


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


class DpopProof(Struct, frozen=True):
    """A proof whose signature and claims are valid. It is not used up yet."""

    jkt: str  # the thumbprint of its key
    jti: str
    expires: int
    algorithm: str
    nonce: str  # "" without one


class DpopProofs:
    def __init__(self, database: Database, base_url: str, nonces: DpopNonces) -> None:
        self._database = database
        self._nonces = nonces
        self._base_url = base_url

    def read(self, headers: Sequence[str], method: str, path: str, access_token: str | None = None) -> DpopProof | None:
        """Returns the proof of a request, or None without one. Raises InvalidDpopProof.

        ``access_token`` is the token that is sent along to a resource, None at the other endpoints.
        """
        if not headers:
            return None
        if len(headers) > 1:
            raise InvalidDpopProof("DPoP: expected one header")
        try:
            token = headers[0].strip()
            jkt, claims = verify_proof(token)
            self._check(claims, method, path, access_token)
        except InvalidToken as error:
            raise InvalidDpopProof(f"DPoP: {error}") from None
        nonce = claims.get("nonce")
        return DpopProof(
            jkt,
            claims["jti"],
            claims["iat"] + MAX_AGE_S + MAX_AHEAD_S,
            str(algorithm_in_header(token, PROOF_JWT)),
            nonce if isinstance(nonce, str) else "",
        )

    def response_headers(self, proof: DpopProof | None) -> dict[str, str]:
        """Returns the next nonce for a client that uses nonces, so that it need not be refused to get one."""
        return {"DPoP-Nonce": self._nonces.current()} if proof and proof.nonce else {}

    async def use(self, proof: DpopProof, rules: ProfileRules) -> None:
        """Uses the proof of a client with these rules up.

        Raises InvalidDpopProof if it was used before, by any worker, and UseDpopNonce if it lacks a valid nonce.
        Callers make all other checks first, above all of the client and of the code or token, so that strangers do not
        fill the table.
        """
        if proof.algorithm not in rules.algorithms:
            raise InvalidDpopProof(f"DPoP: alg: expected one of {', '.join(rules.algorithms)}")
        if rules.needs_dpop_nonce and not self._nonces.is_valid(proof.nonce):
            raise UseDpopNonce(self._nonces.current())
        if not await use_jti(self._database, f"dpop {proof.jkt} {proof.jti}", proof.expires):
            raise InvalidDpopProof("DPoP: the proof was used before")

    def _check(self, claims: Claims, method: str, path: str, access_token: str | None) -> None:
        now, issued_at, jti = self._database.clock.now(), claims.get("iat"), claims.get("jti")
        if claims.get("htm") != method:
            raise InvalidToken(f"htm: expected {method}")
        if not same_uri(claims.get("htu"), self._base_url + path):
            raise InvalidToken("htu: expected the address of this endpoint")
        if type(issued_at) is not int or not now - MAX_AGE_S <= issued_at <= now + MAX_AHEAD_S:
            raise InvalidToken(f"iat: expected a time within the last {MAX_AGE_S} seconds")
        for name in ("nbf", "exp"):
            if name in claims and type(claims[name]) is not int:
                raise InvalidToken(f"{name}: expected a number of seconds")
        if claims.get("nbf", 0) > now + MAX_AHEAD_S or claims.get("exp", now + 1) <= now:
            raise InvalidToken("exp, nbf: expected a proof that is valid now")
        if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI:
            raise InvalidToken(f"jti: expected 1 to {MAX_JTI} characters")
        if access_token is not None and not _is_hash(claims.get("ath"), access_token):
            raise InvalidToken("ath: expected the hash of the access token")


def same_uri(sent: Any, expected: str) -> bool:
    """Returns whether ``htu`` is this address, apart from its query, its fragment and different spellings."""
    return isinstance(sent, str) and len(sent) <= MAX_URI and _normalized(sent) == _normalized(expected)


def _normalized(uri: str) -> tuple[str, str, int | None, str] | None:
    parts = split_url(uri)
    if parts is None or not uri.isascii() or not uri.isprintable():
        return None
    if "@" in parts.netloc or "\\" in uri or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme), parts.path


def _is_hash(ath: Any, access_token: str) -> bool:
    expected = base64.urlsafe_b64encode(hashlib.sha256(access_token.encode()).digest()).rstrip(b"=")
    return isinstance(ath, str) and hmac.compare_digest(ath.encode(), expected)
