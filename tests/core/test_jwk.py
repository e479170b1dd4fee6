"""JWKs of other servers: the keys that are accepted, and those that are not."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from sso.core.jwk import load_jwk
from sso.core.keys import GENERATE, UnusableKey, public_der, public_jwk


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_published_key_can_be_read_again(algorithm: str) -> None:
    key = GENERATE[algorithm]().public_key()
    jwk = public_jwk(key, "k")
    assert public_der(load_jwk(jwk)) == public_der(key)
    del jwk["alg"], jwk["use"]
    assert public_der(load_jwk(jwk)) == public_der(key)


GOOD: dict[str, Any] = public_jwk(GENERATE["ES256"]().public_key(), "k")
WEAK = rsa.generate_private_key(65537, 1024).public_key().public_numbers()


@pytest.mark.parametrize(
    "jwk",
    [
        None,
        [],
        {},
        {**GOOD, "use": "enc"},
        {**GOOD, "alg": "ES512"},
        {**GOOD, "alg": "none"},
        {**GOOD, "crv": "P-384"},
        {**GOOD, "x": "AAAA"},
        {**GOOD, "x": "not base64!"},
        {**GOOD, "x": 7},
        {**GOOD, "y": GOOD["x"]},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        {"kty": "RSA", "n": "A" * 2000, "e": "AQAB"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    ],
)
def test_other_keys_are_refused(jwk: object) -> None:
    with pytest.raises(UnusableKey):
        load_jwk(jwk)


def test_short_rsa_key_is_refused() -> None:
    jwk = public_jwk(GENERATE["RS256"]().public_key(), "k")
    short = base64.urlsafe_b64encode(WEAK.n.to_bytes(128, "big")).decode().rstrip("=")
    with pytest.raises(UnusableKey, match="2048 to 8192 bits"):
        load_jwk({**jwk, "n": short})
