"""Where in the document something stands: whatever is wrong is said with it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sso.core.errors import ApiError

_BEGINS_WITH_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\[[0-9]+\]|\.[A-Za-z0-9_-]+)*: ", re.ASCII)


class DocumentError(ValueError):
    """Where the document is wrong, in one line."""


@contextmanager
def said_at(place: str) -> Iterator[None]:
    """What the readers and stores of the endpoints refuse, they say by the names of fields; this adds the place."""
    try:
        yield
    except ApiError as error:
        raise DocumentError(joined(place, "is removed" if error.message == "removed" else error.message)) from None


def joined(place: str, message: str) -> str:
    """``groups[0]`` and ``title: must be …`` make ``groups[0].title: must be …``."""
    return f"{place}{'.' if _BEGINS_WITH_FIELD.match(message) else ': '}{message}"


def records(section: str, value: object, known: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of an array, each with its place; a field that nobody reads is a mistake."""
    if not isinstance(value, list):
        raise DocumentError(f"{section}: must be an array")
    for at, item in enumerate(value):
        yield f"{section}[{at}]", checked(f"{section}[{at}]", item, known)


def checked(place: str, item: object, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise DocumentError(f"{place}: must be an object")
    for name in item:
        if name not in known:
            raise DocumentError(f"{place}.{name}: there is no such field")
    return item


def by_key(section: str, value: object) -> Iterator[tuple[str, str, Any]]:
    """The members of an object, each with its place and key."""
    if not isinstance(value, dict):
        raise DocumentError(f"{section}: must be an object")
    for key, item in value.items():
        yield f"{section}.{key}", key, item


class UniqueKeys:
    """Each key may stand in the document once."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def __call__(self, place: str, key: object) -> None:
        if key in self._seen:
            raise DocumentError(f"{place}: stands twice in the document")
        self._seen.add(key)
