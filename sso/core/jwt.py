"""Signs and verifies all JWTs. No other module imports the JWT library.

A verification checks the algorithm (against the key, not against the token's header), ``kid``, ``iss``, ``typ`` and the
times, so a token of one kind is rejected where another kind is expected.

Tokens are built here and not by the library, because its overhead is larger than the cost of an EdDSA signature.
"""

import base64
import hmac
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any

import jwt as pyjwt
import orjson
from msgspec import Struct

from sso.core.algorithms import CLIENT_ALGORITHMS
from sso.core.keys import PrivateKey, PublicKey, algorithm_of, algorithms_of, signature_with
from sso.core.verified_signatures import VerifiedSignatures

SKEW_S = 30
# More than the longest token that we issue: one with the longest nickname and nonce, or with a device's key.
MAX_TOKEN = 16 * 1024
MAX_CACHED_HEADERS = 64
MAX_HEADER = 1024  # a header is parsed before the signature is verified, so it is untrusted
# Header members that change how a token is processed. They are not implemented, so tokens with them are rejected.
UNSUPPORTED_MEMBERS = frozenset(("crit", "zip", "b64"))
SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)

# The types of tokens in the header, in upper case: a JWT, or an access token (RFC 9068).
JWT, ACCESS_TOKEN_JWT = "JWT", "AT+JWT"

Claims = dict[str, Any]


class InvalidToken(Exception):
    """The token is not accepted. The reason is for the log and is not disclosed to the client."""


class ExpiredToken(InvalidToken):
    """The token is valid except that it has expired."""


class WrongKey(InvalidToken):
    """The token is not signed with this key."""


class Signer(Struct, frozen=True, dict=True):
    kid: str
    key: PrivateKey
    algorithm: str

    def sign(self, claims: Mapping[str, Any], header_type: str = JWT) -> str:
        """Returns a token. ``kid`` is in the header, for JWT libraries, and in the claims, as §2.1 demands."""
        header = self._header if header_type == JWT else self._encode_header(header_type.lower())
        signed = b"%b.%b" % (header, _base64url(orjson.dumps({**claims, "kid": self.kid})))
        return (b"%b.%b" % (signed, _base64url(self._signature(signed)))).decode()

    def claims_of(self, token: str, header_type: str = JWT) -> Claims:
        """Returns the claims of a token that this key has signed. Raises InvalidToken otherwise.

        EdDSA is deterministic, and signing takes a third of the time of verifying. So the token is signed again and the
        signatures are compared, in their canonical encoding.
        """
        if self.algorithm != "EdDSA":
            return signed_claims(token, self.key.public_key(), header_type)
        if _parse_header(token.partition(".")[0], header_type)[1] != self.algorithm:
            raise InvalidToken("InvalidAlgorithmError")
        signed, _, signature = token.encode().rpartition(b".")
        if not hmac.compare_digest(_base64url(self._signature(signed)), signature):
            raise InvalidToken("InvalidSignatureError")
        return parse_part(signed.partition(b".")[2].decode(), "claims")

    @cached_property
    def _header(self) -> bytes:
        return self._encode_header(JWT)

    def _encode_header(self, header_type: str) -> bytes:
        return _base64url(orjson.dumps({"alg": self.algorithm, "kid": self.kid, "typ": header_type}))

    @cached_property
    def _signature(self) -> Callable[[bytes], bytes]:
        return signature_with(self.key)


class Verifier(Struct, frozen=True):
    """Verifies one kind of token: its ``typ`` (or one of several), and its ``issuer`` or ``audience``."""

    typ: str | tuple[str, ...]
    issuer: str | None = None
    audience: str | None = None
    header_type: str = JWT
    verified: VerifiedSignatures | None = None  # a cache

    def verify(
        self, token: str, find_key: Callable[[str], PublicKey | None], now: float, *, expired_for: int = 0
    ) -> Claims:
        """Returns the claims of a valid token. A token that expired up to ``expired_for`` seconds ago is accepted."""
        key = find_key(kid_of(token, self.header_type))
        if key is None:
            raise InvalidToken("unknown kid")
        return self._checked(self._signed_claims(token, key), now, expired_for)

    def is_cached(self, token: str, key: PublicKey) -> bool:
        """Returns whether the signature was verified before, so that another verification is cheap."""
        return self.verified is not None and self.verified.find(token, key, self.header_type) is not None

    def _signed_claims(self, token: str, key: PublicKey) -> Claims:
        if self.verified is None:
            return signed_claims(token, key, self.header_type)
        claims = self.verified.find(token, key, self.header_type)
        if claims is None:
            claims = signed_claims(token, key, self.header_type)
            self.verified.add(token, key, self.header_type, claims)
        return claims

    def verify_own(
        self, token: str, find_signer: Callable[[str], Signer | None], now: float, *, expired_for: int = 0
    ) -> Claims:
        """Like ``verify``, for a token that this service has signed; uses the private key."""
        signer = find_signer(kid_of(token, self.header_type))
        if signer is None:
            raise InvalidToken("unknown kid")
        return self._checked(signer.claims_of(token, self.header_type), now, expired_for)

    def _checked(self, claims: Claims, now: float, expired_for: int) -> Claims:
        typ = claims.get("typ")
        if not isinstance(typ, str) or typ not in ((self.typ,) if isinstance(self.typ, str) else self.typ):
            raise InvalidToken("wrong typ")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("wrong iss")
        if self.audience is not None and claims.get("aud") != self.audience:
            raise InvalidToken("wrong aud")
        check_times(claims, now, expired_for)
        return claims


def kid_of(token: str, header_type: str = JWT) -> str:
    """Returns the ``kid`` of a token that is not verified yet."""
    if len(token) > MAX_TOKEN or SHAPE.fullmatch(token) is None:
        raise InvalidToken("not a JWT")
    header = token.partition(".")[0]
    if len(header) > MAX_HEADER:
        raise InvalidToken("bad header")
    kid = _parse_header(header, header_type)[0]
    if not kid:
        raise InvalidToken("bad kid")
    return kid


def unverified_parts(token: str, max_length: int) -> tuple[str, Claims]:
    """Returns the ``kid``, "" without one, and the claims of a token that is not verified yet."""
    if len(token) > max_length or SHAPE.fullmatch(token) is None:
        raise InvalidToken("not a JWT")
    header, payload, _ = token.split(".")
    if len(header) > MAX_HEADER:
        raise InvalidToken("bad header")
    return _parse_header(header)[0], parse_part(payload, "claims")


@lru_cache(MAX_CACHED_HEADERS)
def _parse_header(part: str, header_type: str = JWT) -> tuple[str, object]:
    """Returns the ``kid`` ("" if there is none) and ``alg`` of a header.

    All tokens of a key have the same header, so it is cached.
    """
    header = parse_part(part, "header")
    if not header.keys().isdisjoint(UNSUPPORTED_MEMBERS):
        raise InvalidToken("unsupported header member")
    if str(header.get("typ", "JWT")).upper() != header_type:
        raise InvalidToken("bad header typ")
    kid = header.get("kid", "")
    if not isinstance(kid, str) or len(kid) > 128:
        raise InvalidToken("bad kid")
    return kid, header.get("alg")


def optional_kid_of(token: str) -> str:
    """Returns the ``kid`` of a token of another issuer, which is not verified yet; "" if it has none."""
    if len(token) > MAX_TOKEN or SHAPE.fullmatch(token) is None or token.index(".") > MAX_HEADER:
        raise InvalidToken("not a JWT")
    return _parse_header(token.partition(".")[0])[0]


def peek_claim(token: str, name: str) -> tuple[str, Any]:
    """Returns the ``kid`` and one claim of a token that is not verified yet, to find its key."""
    return kid_of(token), parse_part(token.split(".")[1], "claims").get(name)


def parse_part(part: str, name: str) -> Claims:
    """Returns the JSON object of a header or payload. JSON that parsers interpret differently is rejected."""
    try:
        text = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be stored, hashed or compared
    except DuplicateMemberError:
        raise InvalidToken(f"duplicate member in the {name}") from None
    except (ValueError, RecursionError):
        raise InvalidToken(f"bad {name}") from None
    if not isinstance(value, dict):
        raise InvalidToken(f"bad {name}")
    return value


class DuplicateMemberError(ValueError):
    pass


def _object(members: list[tuple[str, Any]]) -> Claims:
    value = dict(members)
    if len(value) != len(members):
        raise DuplicateMemberError
    return value


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_reject_constant)
_ALGORITHMS = {name: pyjwt.PyJWS().get_algorithm_by_name(name) for name in CLIENT_ALGORITHMS}


def algorithm_in_header(token: str, header_type: str = JWT) -> object:
    """Returns ``alg`` of a token that is not verified yet."""
    return _parse_header(token.partition(".")[0], header_type)[1]


def signed_claims(
    token: str, key: PublicKey, header_type: str = JWT, algorithms: Collection[str] | None = None
) -> Claims:
    """Returns the claims of a token if the signature is valid, by default with the one algorithm of our own keys.

    The library only verifies the signature. It does not parse the token, which would take a millisecond for a long one.
    """
    algorithm = algorithm_in_header(token, header_type)
    accepted = (algorithm_of(key),) if algorithms is None else set(algorithms_of(key)).intersection(algorithms)
    if not isinstance(algorithm, str) or algorithm not in accepted:
        raise WrongKey("InvalidAlgorithmError")
    signed, _, encoded = token.encode().rpartition(b".")
    try:
        signature = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        # Only the canonical encoding is accepted: unused bits at its end are zero.
        is_valid = _base64url(signature) == encoded and _ALGORITHMS[algorithm].verify(signed, key, signature)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise WrongKey("InvalidSignatureError")
    return parse_part(signed.partition(b".")[2].decode(), "claims")


def check_times(claims: Claims, now: float, expired_for: int) -> None:
    """Raises InvalidToken if a token is not valid now."""
    for name in ("exp", "iat"):
        if type(claims.get(name)) is not int or claims[name] < 0:
            raise InvalidToken(f"bad {name}")
    if "nbf" in claims and (type(claims["nbf"]) is not int or claims["nbf"] > now + SKEW_S):
        raise InvalidToken("bad nbf")
    if claims["iat"] > now + SKEW_S or claims["iat"] > claims["exp"]:
        raise InvalidToken("bad iat")
    if claims["exp"] + expired_for <= now:
        raise ExpiredToken("expired")


def _base64url(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def looks_like_jwt(token: str) -> bool:
    """Returns whether a bearer token has two dots like a JWT. Access keys have none."""
    return token.count(".") == 2
