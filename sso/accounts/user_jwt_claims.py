"""Reads the claims of a user JWT whose signature was verified."""

import base64
import hashlib
import hmac
from typing import Any

from sso.accounts.authentication_context import GAME_AUTH, GUEST_AUTH, TICKET_AUTHS
from sso.core.jwt import ExpiredToken

SECOND_FACTOR_USED = "2"  # the only value of ``acr``


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


def is_from_device_key(claims: dict[str, Any]) -> bool:
    """Returns True if the JWT derives from a sign-in with the key of a device, with which no account was proved."""
    return claims.get("auth") == GUEST_AUTH


def is_from_ticket(claims: dict[str, Any]) -> bool:
    """Returns True if the JWT derives from a sign-in with the ticket of a store, about which nobody was asked."""
    return claims.get("auth") in TICKET_AUTHS


def has_used_second_factor(claims: dict[str, Any]) -> bool:
    """Returns True if a second factor was used for the sign-in that the JWT derives from, and the JWT says so."""
    return claims.get("acr") == SECOND_FACTOR_USED


def factor_claims(factor: str | None, *, second_factor: bool) -> dict[str, str]:
    """Returns the claims about the factor of the device, if it has one, and whether a second factor was used."""
    claims = {} if factor is None else {"fac": factor_digest(factor)}
    return claims | ({"acr": SECOND_FACTOR_USED} if second_factor else {})


def factor_digest(factor: str) -> str:
    digest = hashlib.sha256(factor.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
