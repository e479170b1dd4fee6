"""JWK sets (RFC 7517) that operators register for others: every key must be usable, and public."""

from contextlib import suppress
from typing import Any, NamedTuple

from sso.core.jwk import load_jwk
from sso.core.keys import PublicKey, UnusableKey, algorithms_of

MAX_KEYS = 10
MAX_PUBLISHED_KEYS = 40  # further keys are ignored
MAX_KID = 128
PRIVATE_MEMBERS = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))


class Jwk(NamedTuple):
    key: PublicKey
    algorithms: tuple[str, ...]  # the one that the JWK names, or all that the key can be used with


def read_jwks(value: Any) -> dict[str, Jwk]:
    """Returns the keys by their ``kid``. A single key may have none; its name is "" then. Raises UnusableKey."""
    keys = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise UnusableKey(f"expected a JWK set: an object with up to {MAX_KEYS} keys")
    by_kid: dict[str, Jwk] = {}
    for number, jwk in enumerate(keys):
        try:
            kid, key = _read_jwk(jwk)
        except UnusableKey as error:
            raise UnusableKey(f"keys[{number}]: {error}") from None
        if kid in by_kid:
            raise UnusableKey(f"keys[{number}].kid: expected one that differs from those of the other keys")
        by_kid[kid] = key
    return by_kid


def read_published_jwks(value: Any) -> dict[str, Jwk]:
    """Returns the usable keys of a set that another server publishes, which may contain others. Raises UnusableKey."""
    keys = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(keys, list):
        raise UnusableKey("expected a JWK set")
    by_kid: dict[str, Jwk] = {}
    for jwk in keys[:MAX_PUBLISHED_KEYS]:
        with suppress(UnusableKey):
            kid, key = _read_jwk(jwk)
            by_kid.setdefault(kid, key)
    return by_kid


def _read_jwk(jwk: Any) -> tuple[str, Jwk]:
    if isinstance(jwk, dict):
        if not PRIVATE_MEMBERS.isdisjoint(jwk):
            raise UnusableKey("expected a public key, without private members")
        if not isinstance(jwk.get("kid", ""), str) or len(jwk.get("kid", "")) > MAX_KID:
            raise UnusableKey(f"kid: expected a text of at most {MAX_KID} characters")
    key = load_jwk(jwk)
    return jwk.get("kid", ""), Jwk(key, (jwk["alg"],) if "alg" in jwk else algorithms_of(key))
