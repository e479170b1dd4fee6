"""Signing and the one verifier of every JWT. Nothing else in the house knows the JWT library.

A verification pins algorithm (the key's own, never the token's word), ``kid``, ``iss``, ``typ`` and the times, so that
a token of one kind is refused wherever another kind is meant.

Tokens are put together here and not by the library, which reads what others have made: its own work would take longer
than a signature with EdDSA.
"""

import base64
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jwt as pyjwt
import orjson

from sso.core.keys import ALGORITHMS, PrivateKey, PublicKey, algorithm_of, signature_with

SKEW_S = 30
# More than the longest that we make: a nickname and a nonce as long as they may be, or a device's key.
MAX_TOKEN = 16 * 1024
MAX_HEADS = 64
MAX_HEAD = 1024  # a header is read before the signature is verified: anybody may have sent it
# Header members that change how the rest is to be read. None of them is implemented, so none is accepted.
NOT_SUPPORTED = frozenset(("crit", "zip", "b64"))
SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)

Claims = dict[str, Any]


class InvalidToken(Exception):
    """The token is not what is wanted here. The reason is for the log, never for the sender."""


class ExpiredToken(InvalidToken):
    """The token was valid until its end."""


@dataclass(frozen=True)
class Signer:
    kid: str
    key: PrivateKey
    algorithm: str

    def sign(self, claims: Mapping[str, Any]) -> str:
        """``kid`` stands in the header, where libraries look, and in the claims, where §2.1 has it."""
        signed = b"%b.%b" % (self._head, _base64url(orjson.dumps({**claims, "kid": self.kid})))
        return (b"%b.%b" % (signed, _base64url(self._signature(signed)))).decode()

    def claims_of(self, token: str) -> Claims:
        """What this key has signed, or InvalidToken.

        EdDSA gives one signature for one text, and making it takes a third of the time of judging it. So it is made
        once more and compared, in its one spelling.
        """
        if self.algorithm != "EdDSA":
            return _signed_claims(token, self.key.public_key())
        if _read_head(token.partition(".")[0])[1] != self.algorithm:
            raise InvalidToken("InvalidAlgorithmError")
        signed, _, signature = token.encode().rpartition(b".")
        if not hmac.compare_digest(_base64url(self._signature(signed)), signature):
            raise InvalidToken("InvalidSignatureError")
        return _read_part(signed.partition(b".")[2].decode(), "claims")

    @cached_property
    def _head(self) -> bytes:
        return _base64url(orjson.dumps({"alg": self.algorithm, "kid": self.kid, "typ": "JWT"}))

    @cached_property
    def _signature(self) -> Callable[[bytes], bytes]:
        return signature_with(self.key)


@dataclass(frozen=True)
class Verifier:
    """What a kind of token must be: ``typ`` (or one of several), and ``issuer`` or ``audience``."""

    typ: str | tuple[str, ...]
    issuer: str | None = None
    audience: str | None = None

    def verify(
        self, token: str, find_key: Callable[[str], PublicKey | None], now: float, *, expired_for: int = 0
    ) -> Claims:
        """The claims of a good token; ``expired_for`` waives an expiry up to that many seconds ago."""
        key = find_key(kid_of(token))
        if key is None:
            raise InvalidToken("unknown kid")
        return self._checked(_signed_claims(token, key), now, expired_for)

    def verify_own(
        self, token: str, find_signer: Callable[[str], Signer | None], now: float, *, expired_for: int = 0
    ) -> Claims:
        """The same of a token that we have made ourselves, by the key that it was made with."""
        signer = find_signer(kid_of(token))
        if signer is None:
            raise InvalidToken("unknown kid")
        return self._checked(signer.claims_of(token), now, expired_for)

    def _checked(self, claims: Claims, now: float, expired_for: int) -> Claims:
        typ = claims.get("typ")
        if not isinstance(typ, str) or typ not in ((self.typ,) if isinstance(self.typ, str) else self.typ):
            raise InvalidToken("wrong typ")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("wrong iss")
        if self.audience is not None and claims.get("aud") != self.audience:
            raise InvalidToken("wrong aud")
        _check_times(claims, now, expired_for)
        return claims


def kid_of(token: str) -> str:
    """The key that a token names, before anything in it is believed."""
    if len(token) > MAX_TOKEN or SHAPE.fullmatch(token) is None:
        raise InvalidToken("not a JWT")
    head = token.partition(".")[0]
    if len(head) > MAX_HEAD:
        raise InvalidToken("bad header")
    return _read_head(head)[0]


@lru_cache(MAX_HEADS)
def _read_head(part: str) -> tuple[str, object]:
    """The ``kid`` and the ``alg`` that a header names. All tokens of a key have the same one."""
    header = _read_part(part, "header")
    if not header.keys().isdisjoint(NOT_SUPPORTED):
        raise InvalidToken("unsupported header member")
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise InvalidToken("bad header typ")
    kid = header.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= 128:
        raise InvalidToken("bad kid")
    return kid, header.get("alg")


def peek_claim(token: str, name: str) -> tuple[str, Any]:
    """The key that a token names and one claim, before anything in it is believed: to know where to look the key up."""
    return kid_of(token), _read_part(token.split(".")[1], "claims").get(name)


def _read_part(part: str, what: str) -> Claims:
    """The object in the header or payload of a token. What readers of JSON understand differently is refused."""
    try:
        value = _DECODER.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode())
    except DuplicateMemberError:
        raise InvalidToken(f"duplicate member in the {what}") from None
    except (ValueError, RecursionError):
        raise InvalidToken(f"bad {what}") from None
    if not isinstance(value, dict):
        raise InvalidToken(f"bad {what}")
    return value


class DuplicateMemberError(ValueError):
    pass


def _object(members: list[tuple[str, Any]]) -> Claims:
    found = dict(members)
    if len(found) != len(members):
        raise DuplicateMemberError
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
_ALGORITHMS = {name: pyjwt.PyJWS().get_algorithm_by_name(name) for name in ALGORITHMS}


def _signed_claims(token: str, key: PublicKey) -> Claims:
    """The library verifies the signature and reads nothing of the token: it would take a millisecond for a long one,
    before anything is known about the sender."""
    algorithm = algorithm_of(key)
    if _read_head(token.partition(".")[0])[1] != algorithm:
        raise InvalidToken("InvalidAlgorithmError")
    signed, _, encoded = token.encode().rpartition(b".")
    try:
        signature = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        # A signature has one spelling: the bits after its end are zero.
        good = _base64url(signature) == encoded and _ALGORITHMS[algorithm].verify(signed, key, signature)
    except ValueError:
        good = False
    if not good:
        raise InvalidToken("InvalidSignatureError")
    return _read_part(signed.partition(b".")[2].decode(), "claims")


def _check_times(claims: Claims, now: float, expired_for: int) -> None:
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
    """Whether a bearer token has the two dots of a JWT. Access keys never do."""
    return token.count(".") == 2
