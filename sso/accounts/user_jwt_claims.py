"""Reads the claims of a user JWT whose signature was verified."""

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sso.accounts.authentication_context import GAME_AUTH, SEVERAL_FACTORS
from sso.core.jwt import ExpiredToken, InvalidToken


def check_end(claims: dict[str, Any], now: float, expired_for: int) -> None:
    """Raises ExpiredToken if the token expired more than ``expired_for`` seconds ago, or its sign-in has ended."""
    end = claims["exp"] + expired_for
    if end <= now or claims.get("ends", end) <= now:
        raise ExpiredToken("expired")


def has_factor(claims: dict[str, Any], factor: str) -> bool:
    """Returns True if a verified JWT was issued to the device with this factor."""
    return hmac.compare_digest(str(claims.get("fac")), factor_digest(factor))


def sign_in_of(claims: dict[str, Any]) -> str:
    """Returns the id of the sign-in that a JWT derives from; JWTs of older versions have none."""
    return str(claims.get("sid", ""))


def is_from_game(claims: dict[str, Any]) -> bool:
    """Returns True if the JWT derives from a login for a game session. Derived credentials keep the claim ``auth``."""
    return claims.get("auth") == GAME_AUTH


def has_used_second_factor(claims: dict[str, Any]) -> bool:
    """Returns True if a second factor was used for the sign-in that the JWT derives from, and the JWT says so."""
    return claims.get("acr") == SEVERAL_FACTORS


def factor_digest(factor: str) -> str:
    digest = hashlib.sha256(factor.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class TokenHolder(Protocol):
    @property
    def disabled(self) -> bool: ...

    @property
    def valid_from(self) -> int: ...


# Returns the user with an id, None if there is none or if the sign-in with the other id has ended.
FindHolder = Callable[[str, str], Awaitable[TokenHolder | None]]


def issued_after(valid_from: int, iat: int) -> dict[str, int]:
    """Returns the claims that make a new JWT of a valid user valid.

    Each revocation advances ``valid_from`` by at least a second, so after several within a second it is later than the
    time. It then counts revocations: a JWT that names the last one was issued after it.
    """
    return {"rev": valid_from} if iat < valid_from else {}


def check_holder(claims: dict[str, Any], holder: TokenHolder | None) -> None:
    """Raises InvalidToken if the user is disabled, or was revoked after the JWT was issued."""
    if holder is None or holder.disabled or max(claims["iat"], claims.get("rev", 0)) < holder.valid_from:
        raise InvalidToken("void")
