"""The generated tables of the documentation: what the source says, joined with the meanings written by hand."""

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from scripts.reference_tables.errors import OTHER_ERRORS, constructor_texts, error_classes, error_texts
from scripts.reference_tables.log_events import log_events
from scripts.reference_tables.metrics import metric_rows
from scripts.reference_tables.program import command_rows, endpoint_rows, event_rows, right_rows, signal_rows
from scripts.reference_tables.route_limits import COLUMNS, limit_rows
from scripts.reference_tables.settings import setting_rows
from scripts.reference_tables.source import Module, modules

DOCS = Path(__file__).parents[2] / "docs"
ERRORS, LOG_EVENTS = DOCS / "errors.rst", DOCS / "log_events.rst"
LIMITS, SETTINGS = DOCS / "limits.rst", DOCS / "settings.rst"
COMMANDS, ENDPOINTS, METRICS = DOCS / "commands.rst", DOCS / "endpoints.rst", DOCS / "metrics.rst"
CHANGES, MANAGEMENT, SIGNALS = DOCS / "changes.rst", DOCS / "management.rst", DOCS / "signals.rst"
SDK_ERRORS = DOCS / "sdk/errors.rst"
PLAYER_TEXTS = DOCS.parent / "sdk/contract/player_texts.json"
TODO = "TODO"
WIDTH = 120
# Error responses of these packages have a code: the endpoints of OAuth, and what every endpoint has in common.
WITH_CODES = ("oauth", "web")

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table of a page. With ``meanings``, its last column is written by hand."""

    title: str
    columns: Row
    rows: Sequence[Row]
    meanings: bool
    page: Path = ERRORS

    def key(self, row: Row) -> str:
        return row[0] if self.meanings else " | ".join(row)


def tables() -> list[Table]:
    """Returns the tables as the source has them, without the meanings."""
    found = modules()
    return [
        _log_table(found),
        _class_table(found),
        *_text_tables(found),
        *_program_tables(),
        Table("Settings", ("Setting", "Default", "Meaning"), setting_rows(), meanings=False, page=SETTINGS),
        Table("Limits of routes", COLUMNS, limit_rows(), meanings=False, page=LIMITS),
        Table("Metrics", ("Metric", "Kind", "Labels", "Meaning"), metric_rows(found), meanings=True, page=METRICS),
        *_player_texts(),
    ]


def _program_tables() -> Iterable[Table]:
    yield Table("Commands", ("Command", "What it does"), command_rows(), meanings=False, page=COMMANDS)
    yield Table("Rights", ("Right", "Includes", "Allows"), right_rows(), meanings=True, page=MANAGEMENT)
    yield Table("Types of events", ("``type``", "Meaning"), event_rows(), meanings=True, page=CHANGES)
    yield Table("Signals", ("Event", "When, and its members"), signal_rows(), meanings=True, page=SIGNALS)
    for tag, rows in endpoint_rows().items():
        columns = ("Endpoint", "Operation", "What it does")
        yield Table(f"Endpoints: {tag}", columns, rows, meanings=False, page=ENDPOINTS)


def _log_table(found: list[Module]) -> Table:
    rows = [
        (f"``{name}``", ", ".join(sorted(event.levels)), ", ".join(f"``{field}``" for field in sorted(event.fields)))
        for name, event in sorted(log_events(found).items())
    ]
    return Table("Log events", ("Event", "Level", "Fields", "Meaning"), rows, meanings=True, page=LOG_EVENTS)


def _class_table(found: list[Module]) -> Table:
    texts = constructor_texts(found)
    rows = [
        (f"``{name}``", str(error.status), f"``{error.code}``", texts.get(name, str(error.message)))
        for name, error in error_classes(found).items()
        if name not in OTHER_ERRORS
    ]
    rows += [(f"``{name}``", "set when raised", "", "") for name in OTHER_ERRORS]
    return Table("Error classes", ("Class", "Status", "Code", "Text", "Meaning"), sorted(rows), meanings=True)


def _player_texts() -> Iterable[Table]:
    """The texts of the packages for games, a table for each language."""
    texts = json.loads(PLAYER_TEXTS.read_text())
    for language in next(iter(texts.values())):
        rows = [(f"``{reason}``", by_language[language]) for reason, by_language in texts.items()]
        yield Table(f"Player texts: {language}", ("Reason", "Text"), rows, meanings=False, page=SDK_ERRORS)


def _text_tables(found: list[Module]) -> Iterable[Table]:
    for package, of_package in groupby(error_texts(found), lambda text: text.package):
        rows = []
        for (status, code, text), same in groupby(of_package, lambda text: (text.status, text.code, text.text)):
            shown_code = f"``{code}``" if code and package in WITH_CODES else ""
            rows.append((status, shown_code, f"``{text}``", ", ".join(f"``{each.module}``" for each in same)))
        yield Table(f"Error texts: {package}", ("Status", "Code", "Text", "Raised in"), rows, meanings=False)


def read_rows(page: str, title: str) -> list[Row]:
    """Returns the rows of a table of the page, without its header row; none if the page has no such table."""
    rows: list[list[str]] = []
    for line in _block(page, title):
        if line.startswith("   * -"):
            rows.append([line[6:].strip()])
        elif line.startswith("     -"):
            rows[-1].append(line[6:].strip())
        elif line.startswith("       ") and rows:
            rows[-1][-1] = f"{rows[-1][-1]} {line.strip()}"
    return [tuple(row) for row in rows[1:]]


def problems(page: str, table: Table) -> list[str]:
    """Returns how a table of the page differs from the source, a line for each difference."""
    if f".. list-table:: {table.title}\n" not in page:
        return [f'there is no table "{table.title}": add ".. list-table:: {table.title}" where it belongs']
    shown = {table.key(row): row for row in read_rows(page, table.title)}
    expected = {table.key(row): row for row in table.rows}
    lines = [f"{key}: is in the source, but not in the table" for key in expected if key not in shown]
    lines += [f"{key}: is in the table, but not in the source" for key in shown if key not in expected]
    for key, row in expected.items():
        if key in shown and shown[key][: len(row)] != row:
            lines.append(f"{key}: the table has {shown[key][: len(row)]}, the source has {row}")
        elif table.meanings and key in shown and shown[key][len(row) :] in ((), ("",), (TODO,)):
            lines.append(f"{key}: write one sentence about what it means in place of {TODO}")
    return lines


def updated(page: str, table: Table) -> tuple[str, list[Row]]:
    """Returns the page with the table brought up to date, and the rows with a meaning that were removed."""
    block = "\n".join(_block(page, table.title))
    old = {table.key(row): row for row in read_rows(page, table.title)}
    rows = [(*row, _meaning(old.get(table.key(row)), row)) if table.meanings else row for row in table.rows]
    removed = [row for key, row in old.items() if table.meanings and key not in {table.key(row) for row in table.rows}]
    options = [line for line in block.split("\n")[1:] if line.startswith("   :")]
    lines = [f".. list-table:: {table.title}", *options, ""]
    for row in (table.columns, *rows):
        for number, cell in enumerate(row):
            lines += _cell("   * - " if number == 0 else "     - ", cell)
    return page.replace(block, "\n".join([*lines, ""])), removed


def _meaning(old: Row | None, row: Row) -> str:
    return old[len(row)] if old and len(old) > len(row) and old[len(row)] else TODO


def _cell(start: str, text: str) -> list[str]:
    if "``" in text and "``, ``" not in text and text.startswith("``"):
        return [f"{start}{text}".rstrip()]  # a literal must not be wrapped: its spaces count
    return textwrap.wrap(
        text, WIDTH, initial_indent=start, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False
    ) or [start.rstrip()]


def _block(page: str, title: str) -> list[str]:
    """Returns the lines of a table: the directive and what is indented below it."""
    lines = page.split("\n")
    try:
        start = lines.index(f".. list-table:: {title}")
    except ValueError:
        return []
    end = next((n for n in range(start + 1, len(lines)) if re.match(r"\S", lines[n])), len(lines))
    return lines[start:end]
