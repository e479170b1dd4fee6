"""Signing and the one verifier of every JWT. Nothing else in the house knows the JWT library.

A verification pins algorithm (the key's own, never the token's word), ``kid``, ``iss``, ``typ`` and the times, so that
a token of one kind is refused wherever another kind is meant.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt as pyjwt

from sso.core.keys import PrivateKey, PublicKey, algorithm_of

SKEW_S = 30
# More than the longest that we make: a nickname and a nonce as long as they may be, or a device's key.
TOKEN_MOST = 16 * 1024
SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)

Claims = dict[str, Any]


class InvalidToken(Exception):
    """The token is not what is wanted here. The reason is for the log, never for the sender."""


@dataclass(frozen=True)
class Signer:
    kid: str
    key: PrivateKey
    algorithm: str

    def sign(self, claims: Mapping[str, Any]) -> str:
        """``kid`` stands in the header, where libraries look, and in the claims, where §2.1 has it."""
        body = {**claims, "kid": self.kid}
        return pyjwt.encode(
            body, self.key, algorithm=self.algorithm, headers={"kid": self.kid}, json_encoder=_PlainEncoder
        )


class _PlainEncoder(json.JSONEncoder):
    """Text as it is: as escapes, a name of a thousand characters could be twelve times as long."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "ensure_ascii": False})


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
        claims = _signed_claims(token, key)
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
    if len(token) > TOKEN_MOST or SHAPE.fullmatch(token) is None:
        raise InvalidToken("not a JWT")
    try:
        header = pyjwt.get_unverified_header(token)
    except (pyjwt.PyJWTError, ValueError, RecursionError):
        raise InvalidToken("bad header") from None
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise InvalidToken("bad header typ")
    kid = header.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= 128:
        raise InvalidToken("bad kid")
    return kid


def peek_claim(token: str, name: str) -> tuple[str, Any]:
    """The key that a token names and one claim, before anything in it is believed: to know where to look the key up."""
    kid = kid_of(token)
    try:
        claims = pyjwt.decode(token, options={"verify_signature": False})
    except (pyjwt.PyJWTError, ValueError, RecursionError):
        raise InvalidToken("bad claims") from None
    return kid, claims.get(name)


def _signed_claims(token: str, key: PublicKey) -> Claims:
    try:
        # The times and names are checked below, where their types are pinned too.
        options = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
        return pyjwt.decode(token, key, algorithms=[algorithm_of(key)], options=options)  # type: ignore[arg-type]
    except (pyjwt.PyJWTError, ValueError, RecursionError) as error:
        raise InvalidToken(type(error).__name__) from None


def _check_times(claims: Claims, now: float, expired_for: int) -> None:
    for name in ("exp", "iat"):
        if type(claims.get(name)) is not int or claims[name] < 0:
            raise InvalidToken(f"bad {name}")
    if "nbf" in claims and (type(claims["nbf"]) is not int or claims["nbf"] > now + SKEW_S):
        raise InvalidToken("bad nbf")
    if claims["iat"] > now + SKEW_S or claims["iat"] > claims["exp"]:
        raise InvalidToken("bad iat")
    if claims["exp"] + expired_for <= now:
        raise InvalidToken("expired")
