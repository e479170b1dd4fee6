"""Locations in the document, such as ``groups[0].title``, which begin every error text."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sso.core.errors import ApiError

_BEGINS_WITH_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\[[0-9]+\]|\.[A-Za-z0-9_-]+)*: ", re.ASCII)


class DocumentError(ValueError):
    """The document is invalid; the text is one line that begins with the location."""


@contextmanager
def error_location(location: str) -> Iterator[None]:
    """Turns errors of readers and stores, which name only the field, into errors that also name the location."""
    try:
        yield
    except ApiError as error:
        raise DocumentError(
            with_location(location, "is removed" if error.message == "removed" else error.message)
        ) from None


def with_location(location: str, message: str) -> str:
    """``groups[0]`` and ``title: must be …`` make ``groups[0].title: must be …``."""
    return f"{location}{'.' if _BEGINS_WITH_FIELD.match(message) else ': '}{message}"


def read_records(section: str, value: object, known: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the records of an array, each with its location. Unknown fields are errors."""
    if not isinstance(value, list):
        raise DocumentError(f"{section}: must be an array")
    for index, item in enumerate(value):
        yield f"{section}[{index}]", check_fields(f"{section}[{index}]", item, known)


def check_fields(location: str, item: object, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise DocumentError(f"{location}: must be an object")
    for name in item:
        if name not in known:
            raise DocumentError(f"{location}.{name}: unknown field")
    return item


def read_members(section: str, value: object) -> Iterator[tuple[str, str, Any]]:
    """Yields the members of an object, each with its location and key."""
    if not isinstance(value, dict):
        raise DocumentError(f"{section}: must be an object")
    for key, item in value.items():
        yield f"{section}.{key}", key, item


class UniqueKeys:
    """Raises DocumentError if a key appears twice."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def add(self, location: str, key: object) -> None:
        if key in self._seen:
            raise DocumentError(f"{location}: appears twice in the document")
        self._seen.add(key)
