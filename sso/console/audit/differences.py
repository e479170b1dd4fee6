"""The difference between the values before and after a change, by field."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

MAX_SHOWN = 200  # fields of one entry
MISSING = object()


class FieldDifference(NamedTuple):
    field: str  # a path such as private_data.chat.kick.value
    before: str | None  # None: there was no value
    after: str | None


def differences(before: Any, after: Any) -> list[FieldDifference]:
    """Returns the fields that differ, by path. Values that are no objects are compared as a whole."""
    found = [FieldDifference(path or "value", _text(old), _text(new)) for path, old, new in _compare("", before, after)]
    return found[:MAX_SHOWN]


def _compare(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before == after:
        return
    old, new = before if before is not None else {}, after if after is not None else {}
    if isinstance(old, dict) and isinstance(new, dict) and (old or new):
        for name in dict.fromkeys((*old, *new)):
            inner = f"{path}.{name}" if path else str(name)
            yield from _compare(inner, old.get(name, MISSING), new.get(name, MISSING))
        return
    if isinstance(before, dict) and before and after is MISSING:
        yield from _compare(path, before, None)
    elif isinstance(after, dict) and after and before is MISSING:
        yield from _compare(path, None, after)
    else:
        yield path, before, after


def _text(value: Any) -> str | None:
    if value is MISSING or value is None:
        return None
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str).decode()
