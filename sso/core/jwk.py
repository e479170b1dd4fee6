"""Public keys in the form of a JWK (RFC 7517), as other servers publish them."""

import base64
import re
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from sso.core.keys import PublicKey, UnusableKey, algorithms_of

MAX_NUMBER = 1400  # characters: an RSA modulus of 8192 bits
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


def load_jwk(jwk: Any) -> PublicKey:
    """Returns the key of a JWK. Raises UnusableKey for keys that are not accepted, and for those that do not sign."""
    if not isinstance(jwk, dict):
        raise UnusableKey("expected a JWK")
    if jwk.get("use", "sig") != "sig":
        raise UnusableKey("expected a key for signatures")
    try:
        key = _load(jwk)
    except ValueError as error:
        raise UnusableKey(str(error)) from None
    algorithms = algorithms_of(key)
    if jwk.get("alg", algorithms[0]) not in algorithms:
        raise UnusableKey("alg: expected RS256, PS256, ES256 or EdDSA")
    return key


def _load(jwk: dict[str, Any]) -> PublicKey:
    match jwk.get("kty"), jwk.get("crv"):
        case "RSA", _:
            return rsa.RSAPublicNumbers(_number(jwk, "e"), _number(jwk, "n")).public_key()
        case "EC", "P-256":
            return ec.EllipticCurvePublicNumbers(_number(jwk, "x"), _number(jwk, "y"), ec.SECP256R1()).public_key()
        case "OKP", "Ed25519":
            return ed25519.Ed25519PublicKey.from_public_bytes(_raw(jwk, "x"))
    raise UnusableKey("a key must be RSA, EC P-256 or Ed25519")


def _number(jwk: dict[str, Any], name: str) -> int:
    return int.from_bytes(_raw(jwk, name), "big")


def _raw(jwk: dict[str, Any], name: str) -> bytes:
    text = jwk.get(name)
    if not isinstance(text, str) or len(text) > MAX_NUMBER or not _BASE64URL.fullmatch(text):
        raise UnusableKey(f"{name}: expected base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
