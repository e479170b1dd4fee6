"""Parses request bodies, JSON or form, with strict rules.

An accepted body can be stored as jsonb and sent back unchanged. The parser rejects what PostgreSQL, other JSON parsers
or Python would refuse or silently alter: deep nesting, duplicate keys, NaN, huge numbers, NUL, lone surrogates.
Most bodies are small and plain, so a cheap scan of the raw bytes decides whether the slower checks are needed.
"""

import binascii
import json
import math
import re
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from pydantic import JsonValue

from sso.core.errors import ApiError
from sso.core.untrusted_json import MAX_LEVELS, count_openings, has_too_many_levels, without_escapes, without_strings

JSON: TypeAlias = JsonValue

MAX_BYTES = 256 * 1024
MAX_VALUES = 10_000  # in a JSON body: limits the time for parsing many tiny values
MAX_SCHEMA_VALUES = 65_536  # in permission schemas
MAX_FORM_FIELDS = 1000  # also at the top of a JSON body


class BodyLimit(NamedTuple):
    max_bytes: int = MAX_BYTES
    max_values: int = MAX_VALUES


SMALL_BODY = BodyLimit()
SCHEMA_BODY = BodyLimit(1024 * 1024, MAX_SCHEMA_VALUES)

_FORM = "application/x-www-form-urlencoded"
_TYPES = {"application/json", _FORM}

# The 66 noncharacters in UTF-8: U+FDD0 to U+FDEF, U+FFFE and U+FFFF, and the last two of every other plane.
_NONCHARACTER = re.compile(
    rb"\xef(?:\xb7[\x90-\xaf]|\xbf[\xbe\xbf])|[\xf0-\xf4][\x8f\x9f\xaf\xbf]\xbf[\xbe\xbf]",
)

_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_LONGEST_INTEGER = len(str(-(2**63)))


CHEAP_BYTES = 32 * 1024
CHEAP_PARTS = 1000
_PARTS = (b",", b"[", b"{", b"&", b"%", b"\\u")


class InvalidBody(ApiError):
    """The body is not accepted; `status` is 400, 413 (too large) or 415 (unsupported media type)."""

    def __init__(self, problem: str, status: int = 400, *, subject: str = "body", position: str = "") -> None:
        self.problem = f"{problem} ({position})" if position else problem
        self.status = status
        self.position = position  # the line and column of a syntax error
        super().__init__(f"{subject} {self.problem}")


class ParsedBody(Struct, frozen=True):
    fields: dict[str, JSON]
    is_form: bool = False
    raw: bytes = b""  # as received: signatures cover these bytes


def is_cheap(raw: bytes) -> bool:
    """Returns whether parsing takes less than about a millisecond: few bytes, values and escapes."""
    if len(raw) <= CHEAP_PARTS:
        return True
    return len(raw) <= CHEAP_BYTES and sum(map(raw.count, _PARTS)) <= CHEAP_PARTS


def parse_body(
    raw: bytes,
    content_type: str | None,
    *,
    forms: bool = True,
    require_type: bool = False,
    max_bytes: int = MAX_BYTES,
    max_values: int = MAX_VALUES,
    repeatable: frozenset[str] = frozenset(),
) -> ParsedBody:
    """Parses a JSON object or, if `forms` is true, a form. Raises InvalidBody only.

    `repeatable`: fields of a form that are lists although their names do not end with brackets.
    """
    if len(raw) > max_bytes:
        raise InvalidBody(f"is larger than {max_bytes} bytes", 413)
    is_form = _is_form(content_type, require_type)
    if is_form and not forms:
        raise InvalidBody("must be application/json", 415, subject="Content-Type")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise InvalidBody("must not begin with a byte order mark")
    if not raw:
        return ParsedBody({}, is_form, raw)
    return ParsedBody(_parse_form(raw, repeatable) if is_form else _parse_json(raw, max_values), is_form, raw)


def _is_form(content_type: str | None, require_type: bool) -> bool:
    if content_type is None or not content_type.strip():
        if require_type:
            raise InvalidBody("is required", subject="Content-Type")
        return False
    media_type, *parameters = (part.strip(" \t") for part in content_type.lower().split(";"))
    if media_type not in _TYPES:
        raise InvalidBody("is not supported", 415, subject="Content-Type")
    if any(parameter not in ("", "charset=utf-8", 'charset="utf-8"') for parameter in parameters):
        raise InvalidBody("may have no parameter but charset=utf-8", 415, subject="Content-Type")
    return media_type == _FORM


def _parse_json(raw: bytes, max_values: int) -> dict[str, JSON]:
    openings = count_openings(raw)
    if openings > MAX_LEVELS or openings + raw.count(b",") > max_values:
        _check_structure(raw, max_values)  # before parsing: the parser recurses
    try:
        fields = _DECODER.decode(raw.decode())
    except UnicodeDecodeError:
        raise InvalidBody("is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidBody("is not valid JSON", position=f"line {error.lineno}, column {error.colno}") from None
    if not isinstance(fields, dict):
        raise InvalidBody("must be one JSON object")
    if len(fields) > MAX_FORM_FIELDS:  # no operation has as many, and validating them takes long
        raise InvalidBody(f"must have at most {MAX_FORM_FIELDS} fields")
    # Characters that are not escaped are visible in the raw bytes; only with escapes must every string be checked.
    check_text(_all_text(fields) if b"\\u" in raw else raw)
    return fields


def _check_structure(raw: bytes, max_values: int) -> None:
    """Counts levels and values without parsing."""
    unescaped = without_escapes(raw)
    if unescaped.count(b'"') > 4 * max_values:  # a value has two for its key and two for itself
        raise InvalidBody(f"must have at most {max_values} values")
    outside = without_strings(unescaped)
    if outside.count(b",") + count_openings(outside) > max_values:
        raise InvalidBody(f"must have at most {max_values} values")
    if has_too_many_levels(outside):
        raise InvalidBody(f"must have at most {MAX_LEVELS} levels")


def _all_text(fields: dict[str, JSON]) -> bytes:
    """Returns all keys and strings as UTF-8. The separator keeps lone surrogates of two strings from forming a pair."""
    texts: list[str] = []
    pending: list[JSON] = [fields]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            texts += value
            pending += value.values()
    try:
        return " ".join(texts).encode()
    except UnicodeEncodeError:
        raise InvalidBody("has a lone surrogate") from None


def check_text(utf8: bytes) -> None:
    if 0 in utf8:
        raise InvalidBody("has a NUL character")
    if not utf8.isascii() and _NONCHARACTER.search(utf8):
        raise InvalidBody("has a Unicode noncharacter")


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidBody("has a duplicate key")
    return fields


def _integer(digits: str) -> int:
    # The length is checked first: int() raises an error at 4,300 digits, and is slow before that.
    if len(digits) <= _LONGEST_INTEGER and -(2**63) <= (number := int(digits)) < 2**63:
        return number
    raise InvalidBody("has an integer beyond 64 bits")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise InvalidBody("has a number that is too large")
    return number


def _constant(name: str) -> None:
    raise InvalidBody("has a number that is not finite")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def _parse_form(raw: bytes, repeatable: frozenset[str]) -> dict[str, JSON]:
    if raw.count(b"&") >= MAX_FORM_FIELDS:
        raise InvalidBody(f"must have at most {MAX_FORM_FIELDS} fields")
    if _BAD_PERCENT.search(raw):
        raise InvalidBody("has a percent sign without two hexadecimal digits")
    fields: dict[str, JSON] = {}
    lists: dict[str, list[JSON]] = {}
    for pair in filter(None, raw.split(b"&")):
        encoded_name, _, encoded_value = pair.partition(b"=")
        name, value = _decode(encoded_name), _decode(encoded_value)
        if name.endswith("[]") or name in repeatable:
            lists.setdefault(name, []).append(value)
        elif name in fields:
            raise InvalidBody("has a repeated field")
        else:
            fields[name] = value
    fields.update(lists)
    return fields


def _decode(encoded: bytes) -> str:
    # As quoted-printable, which differs in the escape character: `unquote_to_bytes` takes 20 ms for a long text.
    decoded = binascii.a2b_qp(encoded.replace(b"=", b"=3D").replace(b"%", b"=").replace(b"+", b" "))
    check_text(decoded)
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        raise InvalidBody("is not valid UTF-8") from None
