"""Output of commands: tables on a terminal, tab-separated lines or JSON for programs.

Texts that users chose (nicknames, titles) must not fake a line or a field, so line breaks and tabs in them are escaped.
JSON has every value unchanged.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import click
import orjson

from sso.cli.echo import echo, echo_json, on_terminal
from sso.core.printable import printable

Format = Literal["json", "tsv"]
Record = Mapping[str, Any]
Command = TypeVar("Command", bound=Callable[..., Any])

GAP = "  "
_CONTROL = {ord(char): char.encode("unicode_escape").decode() for char in map(chr, [*range(32), *range(127, 160)])}


def record_options(command: Command) -> Command:
    """Adds --json and --tsv to a command that shows one record."""
    command = click.option(
        "--tsv", "form", flag_value="tsv", help="Print a line with name, tab and value for each field."
    )(command)
    return click.option("--json", "form", flag_value="json", help="Print JSON (default if piped).")(command)


def list_options(command: Command) -> Command:
    """Adds --json and --tsv to a command that prints a list."""
    command = click.option(
        "--tsv", "form", flag_value="tsv", help="Print tab-separated lines without a header (default if piped)."
    )(command)
    return click.option("--json", "form", flag_value="json", help="Print JSON, one object per line.")(command)


def print_list(
    form: Format | None, records: Iterable[Record], line: Callable[[Any], Sequence[object]] | None = None
) -> None:
    """Prints records with the same keys. ``line`` returns the fields of a tab-separated line (default: all values)."""
    if form == "json":
        for record in records:
            echo_json(record)
    elif form == "tsv" or not on_terminal():
        for record in records:
            fields = line(record) if line else list(record.values())
            echo("\t".join(_field(field) for field in fields))
    else:
        _print_table(list(records))


def print_record(form: Format | None, record: Record) -> None:
    """Prints one record: a line for each field on a terminal, otherwise indented JSON."""
    if form == "tsv":
        for name, value in record.items():
            echo(f"{name}\t{_field(value)}")
        return
    if form == "json" or not on_terminal():
        echo_json(record, indent=True)
        return
    names = [name.replace("_", " ") for name in record]
    longest = max(map(len, names), default=0)
    for name, value in zip(names, record.values(), strict=True):
        echo(name.ljust(longest), nl=False, bold=True)
        echo(f"{GAP}{_cell(value)}")


def print_lines(lines: Iterable[str]) -> None:
    """Prints texts of one line each: on a terminal, line breaks in them are escaped."""
    for line in lines:
        echo(printable(line) if on_terminal() else line)


def _print_table(records: Sequence[Record]) -> None:
    if not records:
        echo("none", err=True)
        return
    header = [name.replace("_", " ").upper() for name in records[0]]
    rows = [[_cell(value) for value in record.values()] for record in records]
    widths = [max(map(_width, column)) for column in zip(header, *rows, strict=True)]
    echo(_pad(header, widths), bold=True)
    for row in rows:
        echo(_pad(row, widths))


def _pad(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
    return GAP.join(padded).rstrip()


def _width(text: str) -> int:
    """Returns the number of terminal columns: wide characters (CJK, emoji) take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _cell(value: object) -> str:
    return printable(_text(value)) or "-"


def _field(value: object) -> str:
    text = _text(value).translate(_CONTROL)
    return printable(text) if on_terminal() else text


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case list() | tuple() if all(isinstance(item, str) for item in value):
            return ",".join(value)
        case list() | tuple() | dict():
            return orjson.dumps(value).decode() if value else ""
    return str(value)
