"""What the readers of all formats share."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from sso.cli.user_files.model import Entries, Entry, JsonObject, NotImported, SourceUser

MAX_LINE = 1 << 20


def convert_each(items: Iterable[tuple[int, Any]], convert: Callable[[JsonObject], SourceUser]) -> Entries:
    """Converts each user. Those that cannot be converted become entries with the reason."""
    for line, item in items:
        if isinstance(item, NotImported):
            yield Entry(line, None, str(item))
        elif not isinstance(item, dict):
            yield Entry(line, None, "expected an object")
        else:
            yield _convert(line, item, convert)


def _convert(line: int, item: JsonObject, convert: Callable[[JsonObject], SourceUser]) -> Entry:
    try:
        return Entry(line, convert(item))
    except NotImported as reason:
        return Entry(line, None, str(reason))


def json_lines(file: TextIO) -> Iterator[tuple[int, Any]]:
    """Yields the value of each line and its number, and NotImported for a line that is no JSON."""
    number = 0
    while text := file.readline(MAX_LINE):
        number += 1
        if len(text) == MAX_LINE and not text.endswith("\n"):
            _skip_line(file)
            yield number, NotImported("the line is too long")
        elif text.strip():
            try:
                yield number, json.loads(text)
            except (ValueError, RecursionError):
                yield number, NotImported("expected JSON")


def _skip_line(file: TextIO) -> None:
    while (rest := file.readline(MAX_LINE)) and not rest.endswith("\n"):
        pass
