"""Lines and columns of a JSON document, for errors that editors can jump to: ``state.json:12:7: users[0].login: …``."""

import json
import re
from typing import NamedTuple

from sso.core.field_errors import FieldError, FieldPath
from sso.web.body import InvalidBody

_SPACE = re.compile(r"[ \t\n\r]*")
_PART = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")
_SYNTAX_ERROR = re.compile(r"line ([0-9]+), column ([0-9]+)")
_DECODER = json.JSONDecoder()


class Position(NamedTuple):
    line: int
    column: int


def find_position(text: str, path: FieldPath) -> Position:
    """Returns where a value begins, or the name of a member; of a path that does not exist, the part that does."""
    offset = at = _skip(text, 0)
    try:
        for part in path:
            found = _member(text, at, part) if isinstance(part, str) else _item(text, at, part)
            if found is None:
                break
            offset, at = found
    except (ValueError, IndexError):
        pass
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def located(name: str, text: str, error: FieldError | InvalidBody) -> str:
    """Returns the error with the name of the file, the line and the column."""
    if isinstance(error, FieldError):
        line, column = find_position(text, error.path)
    elif match := _SYNTAX_ERROR.search(error.position):
        return f"{name}:{match[1]}:{match[2]}: this is not valid JSON"
    else:
        line = column = 1
    return f"{name}:{line}:{column}: {error}"


def located_text(name: str, text: str, message: str) -> str:
    """The same for the text of an error that the service has returned, which begins with the path."""
    path, separator, _ = message.partition(": ")
    parts = tuple(match[1] or int(match[2]) for match in _PART.finditer(path)) if separator and " " not in path else ()
    position = find_position(text, parts)
    return f"{name}:{position.line}:{position.column}: {message}"


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _member(text: str, at: int, name: str) -> tuple[int, int] | None:
    """Returns where the name of a member begins, and where its value does."""
    if text[at] != "{":
        return None
    at = _skip(text, at + 1)
    while text[at] == '"':
        start = at
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # the colon
        if key == name:
            return start, at
        at = _next(text, at)
    return None


def _item(text: str, at: int, index: int) -> tuple[int, int] | None:
    if text[at] != "[":
        return None
    at = _skip(text, at + 1)
    for _ in range(index):
        at = _next(text, at)
    return None if text[at] == "]" else (at, at)


def _next(text: str, at: int) -> int:
    """Returns where the next member or item begins, or the bracket at the end."""
    at = _skip(text, _DECODER.raw_decode(text, at)[1])
    return _skip(text, at + 1) if text[at] == "," else at
