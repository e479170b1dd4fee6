"""A hash of another program, and the limits that it must keep.

A hash names its own cost, so without limits an imported one could keep a CPU or the memory busy at each login attempt.
All limits stand for about a second and a half of one CPU, and ``MAX_MEMORY`` bytes.
"""

import base64
from collections.abc import Callable

from msgspec import Struct

MAX_LENGTH = 1024  # of the text of a hash
MAX_MEMORY = 128 * 1024 * 1024
MIN_DIGEST = 16  # bytes: an empty or very short digest would match by chance


class UnusableHash(ValueError):
    """The text says what is wrong. It has no part of the hash."""


class PasswordHash(Struct, frozen=True):
    text: str  # as it is stored
    kind: str  # for reports and documentation
    verify: Callable[[bytes], bool]  # gets the password


def decode_base64(text: str, name: str, *, minimum: int = 0) -> bytes:
    """Accepts both alphabets and that of passlib, with and without padding. Raises UnusableHash."""
    plain = text.strip().rstrip("=").translate(str.maketrans("-_.", "+/+"))
    try:
        value = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        raise UnusableHash(f"the {name} must be base64") from None
    return _at_least(value, name, minimum)


def decode_hex(text: str, name: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        raise UnusableHash(f"the {name} must be hexadecimal") from None
    return _at_least(value, name, MIN_DIGEST)


def encode_base64(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")


def read_number(text: str, name: str, maximum: int) -> int:
    """Returns a number from 1 to ``maximum``. Raises UnusableHash."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 12
    if not is_number or not 1 <= int(text) <= maximum:
        raise UnusableHash(f"the {name} must be a number from 1 to {maximum:,}")
    return int(text)


def _at_least(value: bytes, name: str, minimum: int) -> bytes:
    if len(value) < minimum:
        raise UnusableHash(f"the {name} must have at least {minimum} bytes")
    return value
