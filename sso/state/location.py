"""Locations in the document, such as ``groups[0].title``, which are the paths of its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sso.core.errors import ApiError
from sso.core.field_errors import FieldError, FieldPath


@contextmanager
def error_location(location: FieldPath) -> Iterator[None]:
    """Puts the location before the path of an error of a reader or an operation, which know only the record."""
    try:
        yield
    except FieldError as error:
        located = error.within(*location)
        located.status = 400  # the document is wrong, whatever the request for one record would have been
        raise located from None
    except ApiError as error:
        raise FieldError(location, "is removed" if error.message == "removed" else error.message) from None


def read_records(path: FieldPath, value: object, known: frozenset[str]) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    """Yields the records of an array, each with its location. Unknown fields are errors."""
    if not isinstance(value, list):
        raise FieldError(path, "must be an array")
    for index, item in enumerate(value):
        yield (*path, index), check_fields((*path, index), item, known)


def check_fields(location: FieldPath, item: object, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise FieldError(location, "must be an object")
    for name in item:
        if name not in known:
            raise FieldError((*location, name), "unknown field")
    return item


def read_members(section: str, value: object) -> Iterator[tuple[FieldPath, str, Any]]:
    """Yields the members of an object, each with its location and key."""
    if not isinstance(value, dict):
        raise FieldError((section,), "must be an object")
    for key, item in value.items():
        yield (section, key), key, item


class UniqueKeys:
    """Raises FieldError if a key appears twice."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def add(self, location: FieldPath, key: object) -> None:
        if key in self._seen:
            raise FieldError(location, "appears twice in the document")
        self._seen.add(key)
