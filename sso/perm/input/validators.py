"""Strict readers of single JSON values: a boolean is not an integer, and a string is not an array.

A ``check_*`` function returns the value or raises ValueError with the text of what was expected; models use it as the
type of a field. A ``read_*`` function does the same at a named place of the input, and raises FieldError.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sso.core.field_errors import FieldError, FieldPath, field_text, is_plain_name

MAX_NUMBER = 2**53 - 1  # the largest integer that every JSON reader keeps exactly
MAX_TEXT = 1024
MAX_WORD = 256
MAX_URL = 2048
MAX_DOMAINS = 1000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_URL = re.compile(r"https?://[^\s\x00-\x20\x7f\"<>\\^`{|}]+", re.ASCII | re.IGNORECASE)
_DOMAIN = re.compile(r"[^\s@\x00-\x20\x7f-\x9f]{1,255}")

T = TypeVar("T")


def read(check: Callable[[object], T], value: object, path: FieldPath) -> T:
    """Apply a ``check_*`` function to the value at ``path``."""
    try:
        return check(value)
    except ValueError as error:
        raise FieldError(path, str(error)) from None


def read_object(value: object, path: FieldPath) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(path, "must be an object")
    return value


def read_array(value: object, path: FieldPath, max_items: int | None = None) -> list[Any]:
    if not isinstance(value, list):
        raise FieldError(path, "must be an array")
    if max_items is not None and len(value) > max_items:
        raise FieldError(path, f"must have at most {max_items} items")
    return value


def check_text(value: object, max_length: int = MAX_TEXT, *, min_length: int = 0) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - a check raises one kind of error
    if len(value) < min_length:
        raise ValueError("must not be empty")
    if len(value) > max_length:
        raise ValueError(f"must be at most {max_length} characters")
    return value


def read_text(value: object, path: FieldPath, max_length: int = MAX_TEXT, *, min_length: int = 0) -> str:
    return read(lambda text: check_text(text, max_length, min_length=min_length), value, path)


def check_word(value: object, max_length: int = MAX_WORD) -> str:
    """A text that is compared or shown in one line: not empty, and without control characters."""
    word = check_text(value, max_length, min_length=1)
    if _CONTROL.search(word):
        raise ValueError("must not contain control characters")
    return word


def read_word(value: object, path: FieldPath, max_length: int = MAX_WORD) -> str:
    return read(lambda word: check_word(word, max_length), value, path)


def read_flag(value: object, path: FieldPath) -> bool:
    if not isinstance(value, bool):
        raise FieldError(path, "must be true or false")
    return value


def check_number(value: object) -> int:
    """A count, a Unix time or a number of seconds; 0 means unset."""
    if type(value) is not int:
        raise ValueError("must be an integer")
    if value < 0:
        raise ValueError("must not be negative")
    if value > MAX_NUMBER:
        raise ValueError(f"must be at most {MAX_NUMBER}")
    return value


def read_number(value: object, path: FieldPath) -> int:
    return read(check_number, value, path)


def check_url(value: object) -> str:
    """A link for people and other services, or an empty string. This service never follows it."""
    url = check_text(value, MAX_URL)
    if url and not _URL.fullmatch(url):
        raise ValueError("must be an http or https address")
    return url


def check_domain(value: object) -> str:
    """A login domain. It is compared as a whole: no ``@``, and no wildcards."""
    if not isinstance(value, str) or not _DOMAIN.fullmatch(value):
        raise ValueError("must be a domain, the part of a login after the @")
    return value


def unknown_field_warnings(value: Mapping[str, Any], known: Iterable[str], path: FieldPath) -> list[str]:
    """One warning for each field that is ignored."""
    unknown = [name for name in value if name not in known]
    if not unknown:
        return []
    prefix = f"{field_text(path)}." if path else ""
    return [f"{prefix}{name if is_plain_name(name) else 'a field'}: unknown field, ignored" for name in unknown]


def unique(items: Iterable[str]) -> list[str]:
    """The items without duplicates, in their order."""
    return list(dict.fromkeys(items))
