"""The page of the documentation that shows a report."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scripts.proofs.report import PartReport, Report

INTRODUCTION = """\
:kind: explanation

.. This page is written by scripts/prove; do not change it by hand.

What was proven, and how
========================

``scripts/prove all --minutes 60`` tries to break the service in each of these ways and writes this page. Run it
yourself: it needs no other machine, and speaks to nothing but the loopback interface. A *violation* is something
that must never happen, and did. A *planted fault* is a mistake in a copy of the program that the check must
find: a check that misses it would prove nothing.
"""


def render(report: Report) -> str:
    verdict = (
        "No violation was found." if report.is_proven else "**Violations were found, or a planted fault was missed.**"
    )
    facts = [("Commit", report.commit), ("Duration", _duration(report.duration_s)), *report.machine.items()]
    lines = [
        INTRODUCTION,
        verdict,
        "",
        *_table(("The run", "Value"), facts),
        *_table(
            ("Part", "Time", "Rounds", "Requests", "Faults injected", "Planted faults found", "Violations"),
            [_overview(name, part) for name, part in report.parts.items()],
        ),
    ]
    for name, part in report.parts.items():
        lines += _section(name, part)
    return "\n".join(lines).rstrip() + "\n"


def _overview(name: str, part: PartReport) -> Sequence[Any]:
    if not part.was_run:
        return (name, "not run", "", "", "", "", "")
    planted = f"{sum(part.planted.values())} of {len(part.planted)}" if part.planted else ""
    faults = sum(part.faults.values()) or ""
    return (name, _duration(part.seconds), part.rounds, part.requests, faults, planted, len(part.violations))


def _section(name: str, part: PartReport) -> Iterator[str]:
    title = name.capitalize()
    yield from (title, "-" * len(title), "")
    if part.purpose:
        yield from (part.purpose, "")
    if part.commit:
        yield from (f"This part is of a later run, at commit {part.commit}.", "")
    yield from _list("Violations:", [text.partition("; ")[0] for text in part.violations])  # the report has all of it
    yield from _list("Checked:", part.invariants)
    if part.faults:
        yield from _table(("Fault", "Injected"), part.faults.items())
    if part.planted:
        rows = [(text, "yes" if is_found else "**no**") for text, is_found in part.planted.items()]
        yield from _table(("Planted fault", "Found"), rows)
    if part.figures:
        yield from _table(tuple(part.figures[0]), [list(row.values()) for row in part.figures])
    yield from _list("Not run:", [f"{what}: {why}" for what, why in part.not_run.items()])


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from (title, "", *(f"* {_escaped(item)}" for item in items), "")


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "")
    for row in (columns, *rows):
        for number, cell in enumerate(row):
            yield f"   {'*' if number == 0 else ' '} - {_cell(cell)}".rstrip()
    yield ""


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    return value if value == "**no**" else _escaped(str(value))


def _escaped(text: str) -> str:
    """Returns the text on one line, without the characters that reStructuredText would take for markup."""
    text = " ".join(text.split())
    for character in "\\*`|_":
        text = text.replace(character, f"\\{character}")
    return text


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds / 60:.0f} min"
