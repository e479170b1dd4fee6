"""The public key of a passkey, in the form of COSE (RFC 9053) with the members that are used, and no others."""

from typing import Any

from sso.accounts.passkeys import cbor

ALGORITHMS = (-7, -257, -8)  # ES256, RS256 and EdDSA, by their COSE numbers
MAX_KEY = 2048  # bytes; the largest RSA key has some 1,050
MIN_RSA_BYTES, MAX_RSA_BYTES, MAX_EXPONENT_BYTES = 256, 1024, 4
COORDINATE_BYTES = 32

_KTY, _ALG = 1, 3
# The members that are used, by kty, alg and crv: elliptic curve (P-256) and octet key pair (Ed25519).
_KINDS: dict[tuple[Any, Any, Any], tuple[int, ...]] = {
    (2, -7, 1): (_KTY, _ALG, -1, -2, -3),  # kty, alg, crv, x, y
    (1, -8, 6): (_KTY, _ALG, -1, -2),  # kty, alg, crv, x
}
_RSA = (3, -257)
_RSA_MEMBERS = (_KTY, _ALG, -1, -2)  # kty, alg, n, e


def used_members(encoded: bytes) -> dict[int, Any]:
    """Returns the members that verify a signature. Raises TypeError or ValueError for a key that is not accepted.

    A key may have members of any size that nothing reads. Keys of earlier releases are stored with them, so a key is
    reduced when it is read as well.
    """
    if len(encoded) > MAX_KEY:
        raise ValueError("the key is too large")
    key = cbor.decode(encoded)
    if not isinstance(key, dict):
        raise TypeError("expected a map")
    if (key.get(_KTY), key.get(_ALG)) == _RSA:
        _check_rsa(key.get(-1), key.get(-2))
        return {number: key[number] for number in _RSA_MEMBERS}
    kind = key.get(_KTY), key.get(_ALG), key.get(-1)
    members = _KINDS.get(kind) if all(type(number) is int for number in kind) else None
    if members is None:
        raise ValueError("unknown kind of key")
    if not all(isinstance(key.get(number), bytes) and len(key[number]) == COORDINATE_BYTES for number in members[3:]):
        raise ValueError(f"expected coordinates of {COORDINATE_BYTES} bytes")
    return {number: key[number] for number in members}


def _check_rsa(modulus: Any, exponent: Any) -> None:
    """Raises an error for a key that is too small, or so large that verifying takes long."""
    if not isinstance(modulus, bytes) or not isinstance(exponent, bytes):
        raise TypeError("expected a modulus and an exponent")
    if not MIN_RSA_BYTES <= len(modulus.lstrip(b"\0")) <= MAX_RSA_BYTES:
        raise ValueError(f"expected {MIN_RSA_BYTES * 8} to {MAX_RSA_BYTES * 8} bits")
    if len(exponent.lstrip(b"\0")) > MAX_EXPONENT_BYTES:
        raise ValueError("the exponent is too large")
