"""The generated tables of the documentation agree with the source."""

import ast
import re
from pathlib import Path

import pytest

from scripts.reference_tables.log_events import log_events
from scripts.reference_tables.page import ERRORS, LOG_EVENTS, Table, problems, tables, updated
from scripts.reference_tables.source import Module

EXAMPLE = Table("Log events", ("Event", "Level", "Fields", "Meaning"), [("``mail.sent``", "info", "")], meanings=True)
EXAMPLE_PAGE = """Title
=====

.. list-table:: Log events
   :header-rows: 1

   * - Event
     - Level
     - Fields
     - Meaning
   * - ``mail.sent``
     - info
     -
     - A mail was delivered,
       and removed from the outbox.

The end.
"""


@pytest.fixture(scope="module")
def source_tables() -> list[Table]:
    return tables()


def test_tables_agree_with_source(source_tables: list[Table]) -> None:
    differences = [
        f"{table.title}: {problem}" for table in source_tables for problem in problems(table.page.read_text(), table)
    ]
    advice = "run scripts/reference and write the meanings that it asks for"
    assert not differences, "\n".join([advice, *differences])


@pytest.mark.parametrize("page", [ERRORS, LOG_EVENTS], ids=["errors", "log events"])
def test_page_has_no_table_without_source(source_tables: list[Table], page: Path) -> None:
    titles = {line.removeprefix(".. list-table:: ") for line in page.read_text().split("\n") if "list-table" in line}
    assert titles == {table.title for table in source_tables if table.page == page}


def test_example_page_has_no_problems_and_is_not_changed_by_an_update() -> None:
    assert problems(EXAMPLE_PAGE, EXAMPLE) == []
    page, removed = updated(EXAMPLE_PAGE, EXAMPLE)
    assert "A mail was delivered, and removed from the outbox." in page
    assert page.endswith("\n\nThe end.\n")
    assert removed == []


def test_new_event_is_reported_until_its_meaning_is_written() -> None:
    table = Table(
        EXAMPLE.title, EXAMPLE.columns, [*EXAMPLE.rows, ("``mail.failed``", "error", "``id``")], meanings=True
    )
    assert problems(EXAMPLE_PAGE, table) == ["``mail.failed``: is in the source, but not in the table"]
    page, _ = updated(EXAMPLE_PAGE, table)
    assert problems(page, table) == ["``mail.failed``: write one sentence about what it means in place of TODO"]
    assert problems(page.replace("TODO", "A mail was not delivered."), table) == []


def test_removed_event_is_reported_and_its_meaning_handed_back() -> None:
    table = Table(EXAMPLE.title, EXAMPLE.columns, [], meanings=True)
    assert problems(EXAMPLE_PAGE, table) == ["``mail.sent``: is in the table, but not in the source"]
    page, removed = updated(EXAMPLE_PAGE, table)
    assert problems(page, table) == []
    assert [row[-1] for row in removed] == ["A mail was delivered, and removed from the outbox."]


def test_changed_fields_are_reported() -> None:
    table = Table(EXAMPLE.title, EXAMPLE.columns, [("``mail.sent``", "info", "``id``")], meanings=True)
    assert problems(EXAMPLE_PAGE, table) == [
        "``mail.sent``: the table has ('``mail.sent``', 'info', ''), the source has ('``mail.sent``', 'info', '``id``')"
    ]


def test_event_that_is_not_literal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module("example.py")
    monkeypatch.setitem(module.__dict__, "tree", ast.parse('log.info("a" + "b")'))
    with pytest.raises(ValueError, match=r"sso/example\.py:1: expected a literal string"):
        log_events([module])


def test_log_events_are_named_area_dot_what_happened(source_tables: list[Table]) -> None:
    events = [row[0].strip("`") for row in source_tables[0].rows]
    in_past_tense = re.compile(r"[a-z_]+\.([a-z]+_)*([a-z]+ed|lost|sent|written|was_slow)")
    assert [event for event in events if not in_past_tense.fullmatch(event)] == []


def test_event_names_in_the_documentation_exist(source_tables: list[Table]) -> None:
    events = {row[0].strip("`") for row in source_tables[0].rows}
    pages = [path.read_text() for path in LOG_EVENTS.parent.glob("*.rst") if path not in (ERRORS, LOG_EVENTS)]
    named = {name for page in pages for name in re.findall(r"``((?:gsid|oauth|proxy|mail|keys)\.[a-z_]+)``", page)}
    assert "gsid.violation_recorded" in named
    assert named <= events
