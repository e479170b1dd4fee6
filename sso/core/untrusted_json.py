"""JSON from other parties: how deeply its values may be nested.

The JSON library reads 1,024 levels, but writes only 254. So a value with more levels than ``MAX_LEVELS`` is refused
when it is read, before it can be stored or sent.
"""

from itertools import accumulate
from typing import Any

import orjson

MAX_LEVELS = 64

_OPENING, _CLOSING = b"[{", b"]}"
_STEPS = bytes.maketrans(_OPENING + _CLOSING, b"\x01\x01\xff\xff")  # one level down; one level up, as a signed byte
_NO_BRACKET = bytes(set(range(256)) - set(_OPENING + _CLOSING))


def read_json(text: str | bytes) -> Any:
    """Returns the value of a text. Raises ValueError if it is not JSON, or has more than ``MAX_LEVELS`` levels."""
    raw = text.encode() if isinstance(text, str) else text
    if count_openings(raw) > MAX_LEVELS and has_too_many_levels(without_strings(without_escapes(raw))):
        raise ValueError(f"must have at most {MAX_LEVELS} levels")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise ValueError("must be valid JSON") from None


def count_openings(raw: bytes) -> int:
    return raw.count(b"[") + raw.count(b"{")


def without_escapes(raw: bytes) -> bytes:
    """Returns the text without escaped quotes: every quote that is left begins or ends a string."""
    # Without pairs of backslashes, a backslash before a quote is an escape.
    return raw.replace(b"\\\\", b"").replace(b'\\"', b"")


def without_strings(unescaped: bytes) -> bytes:
    """Returns what is outside the strings. Exact up to the first syntax error, where a parser stops anyway."""
    return b"".join(unescaped.split(b'"')[::2])


def has_too_many_levels(outside: bytes) -> bool:
    """Returns whether a text without its strings has more than ``MAX_LEVELS`` levels."""
    steps = outside.translate(_STEPS, _NO_BRACKET)
    return any(map(MAX_LEVELS.__lt__, accumulate(memoryview(steps).cast("b"))))
