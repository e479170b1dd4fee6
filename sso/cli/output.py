"""Output of commands: tables on a terminal, tab-separated lines or JSON for programs.

Texts that users chose (nicknames, titles) must not control the terminal or fake a line, so control characters in them
are escaped. JSON has every value unchanged.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import click
import orjson

from sso.config import allows_colour
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


def on_terminal() -> bool:
    return sys.stdout.isatty()


def print_list(
    form: Format | None, records: Iterable[Record], line: Callable[[Any], Sequence[object]] | None = None
) -> None:
    """Prints records with the same keys. ``line`` returns the fields of a tab-separated line (default: all values)."""
    if form == "json":
        for record in records:
            click.echo(orjson.dumps(record))
    elif form == "tsv" or not on_terminal():
        for record in records:
            fields = line(record) if line else list(record.values())
            click.echo("\t".join(_field(field) for field in fields))
    else:
        _print_table(list(records))


def print_record(form: Format | None, record: Record) -> None:
    """Prints one record: a line for each field on a terminal, otherwise indented JSON."""
    if form == "tsv":
        for name, value in record.items():
            click.echo(f"{name}\t{_field(value)}")
        return
    if form == "json" or not on_terminal():
        print_json(record)
        return
    names = [name.replace("_", " ") for name in record]
    longest = max(map(len, names), default=0)
    for name, value in zip(names, record.values(), strict=True):
        click.echo(f"{styled(name.ljust(longest), bold=True)}{GAP}{_cell(value)}")


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines of text; on a terminal without control characters."""
    for line in lines:
        click.echo(printable(line) if on_terminal() else line)


def print_json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def styled(text: str, **style: Any) -> str:
    """Returns the text with colours, if it goes to a terminal that may have them."""
    return click.style(text, **style) if on_terminal() and allows_colour() else text


def _print_table(records: Sequence[Record]) -> None:
    if not records:
        click.echo("none", err=True)
        return
    header = [name.replace("_", " ").upper() for name in records[0]]
    rows = [[_cell(value) for value in record.values()] for record in records]
    widths = [max(map(_width, column)) for column in zip(header, *rows, strict=True)]
    click.echo(styled(_pad(header, widths), bold=True))
    for row in rows:
        click.echo(_pad(row, widths))


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
