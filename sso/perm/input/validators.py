"""The kinds of JSON values, read strictly: a boolean is no integer, and a string is no list of characters."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sso.perm.errors import InvalidInput

# What every reader of JSON keeps exactly; later than any moment that matters.
MAX_NUMBER = 2**53 - 1
MAX_TEXT = 1024
MAX_URL = 2048

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_URL = re.compile(r"https?://[^\s\x00-\x20\x7f\"<>\\^`{|}]+", re.ASCII | re.IGNORECASE)
_DOMAIN = re.compile(r"[^\s@\x00-\x20\x7f-\x9f]{1,255}")


def an_object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: must be an object")
    return value


def an_array(value: object, where: str, most: int | None = None) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{where}: must be an array")
    if most is not None and len(value) > most:
        raise InvalidInput(f"{where}: must have at most {most} items")
    return value


def text(value: object, where: str, most: int = MAX_TEXT, *, least: int = 0) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: must be a string")
    if len(value) < least:
        raise InvalidInput(f"{where}: must not be empty")
    if len(value) > most:
        raise InvalidInput(f"{where}: must be at most {most} characters")
    return value


def word(value: object, where: str, most: int = 256) -> str:
    """A text to compare with: something, and nothing that cannot be seen."""
    found = text(value, where, most, least=1)
    if _CONTROL.search(found):
        raise InvalidInput(f"{where}: must not hold control characters")
    return found


def flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{where}: must be true or false")
    return value


def number(value: object, where: str) -> int:
    """A count, a moment or a number of seconds; 0 means unset."""
    if type(value) is not int:
        raise InvalidInput(f"{where}: must be an integer")
    if value < 0:
        raise InvalidInput(f"{where}: must not be negative")
    if value > MAX_NUMBER:
        raise InvalidInput(f"{where}: is too large")
    return value


def url(value: object, where: str) -> str:
    """A link for people and other services; this service never follows it."""
    found = text(value, where, MAX_URL)
    if found and not _URL.fullmatch(found):
        raise InvalidInput(f"{where}: must be an http or https address")
    return found


def domain(value: object, where: str) -> str:
    """A login domain, compared as a whole: no ``@``, no wildcard meaning."""
    if not isinstance(value, str) or not _DOMAIN.fullmatch(value):
        raise InvalidInput(f"{where}: must be a domain, the part of a login after the @")
    return value


def domains(value: object, where: str, most: int = 1000) -> list[str]:
    return list(dict.fromkeys(domain(item, f"{where}[{at}]") for at, item in enumerate(an_array(value, where, most))))


def unknown(value: Mapping[str, Any], known: frozenset[str], where: str) -> list[str]:
    """Warnings for fields that nobody reads. A strange name is not repeated: it would end up on somebody's screen."""
    prefix = f"{where}." if where else ""
    names = (name if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) else "a field" for name in value if name not in known)
    return [f"{prefix}{name}: unknown field, ignored" for name in names]


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """The items without duplicates, in their order."""
    return tuple(dict.fromkeys(items))
