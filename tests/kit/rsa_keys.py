"""RSA keys without the search for primes, which takes a quarter of a second for 2048 bits and seconds for 4096.

Their primes are known, so they are only for tests.
"""

import functools
import itertools
from pathlib import Path
from typing import Any
from unittest import mock

from cryptography.hazmat.primitives.asymmetric import rsa

from sso.core.keys import GENERATE
from sso.keys.rotation import KeyRotation

_EXPONENT = 65537
_FIRST_OF_SERVICES = 20  # the keys before it are those of clients, users and attackers
_PRIMES = Path(__file__).parent / "rsa_primes.txt"


@functools.cache
def rsa_key(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Returns one of 120 keys of 2048 bits, after which they repeat, or the key of 3072, 4096 or 4104 bits."""
    p, q = _pairs(bits)[number % len(_pairs(bits))]
    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(_EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


@functools.cache
def _pairs(bits: int) -> list[tuple[int, int]]:
    primes = [int(line, 16) for line in _PRIMES.read_text().split()]
    return list(itertools.combinations([prime for prime in primes if prime.bit_length() * 2 == bits], 2))


def use_quick_signing_key(number: int) -> None:
    """Makes a service whose database has no signing keys begin with one of these. Later keys are generated as usual.

    Services with numbers that follow each other have different keys.
    """
    ensure = KeyRotation.ensure_signing_keys

    async def ensure_quickly(self: KeyRotation, *arguments: Any, **options: Any) -> None:
        with mock.patch.dict(GENERATE, RS256=lambda: rsa_key(_FIRST_OF_SERVICES + number % 100)):
            await ensure(self, *arguments, **options)

    KeyRotation.ensure_signing_keys = ensure_quickly  # type: ignore[method-assign]
