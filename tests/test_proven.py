"""The report of scripts/prove and its page in the documentation."""

from pathlib import Path

from scripts.proofs.page import render
from scripts.proofs.part import PartResult
from scripts.proofs.report import PartReport, Report

DOCS = Path(__file__).parents[1] / "docs"


def test_page_shows_the_report() -> None:
    report = Report.model_validate_json((DOCS / "proven.json").read_text())
    advice = "write both with: scripts/prove all --minutes 60 --out docs/proven.json"
    assert (DOCS / "proven.rst").read_text() == render(report), advice


def test_part_of_a_later_run_replaces_its_own_part_only() -> None:
    def report(commit: str, **rounds: int) -> Report:
        parts = {name: PartReport.of(PartResult(rounds=count), "Purpose.", 1) for name, count in rounds.items()}
        return Report(commit=commit, machine={}, minutes=1, parts=parts)

    both = report("old", soak=1, fuzz=2).with_parts_of(report("new", soak=0, fuzz=9), ["fuzz"])
    assert {name: (part.rounds, part.commit) for name, part in both.parts.items()} == {
        "soak": (1, ""),
        "fuzz": (9, "new"),
    }
    assert both.commit == "old"
    assert "This part is of a later run, at commit new." in render(both)


def test_violation_and_missed_planted_fault_are_shown() -> None:
    for result in (PartResult(violations=["code: a*b was used twice"]), PartResult(planted={"a fault": False})):
        report = Report(commit="c", machine={}, minutes=1, parts={"histories": PartReport.of(result, "Purpose.", 1)})
        assert not report.is_proven
        page = render(report)
        assert "**Violations were found, or a planted fault was missed.**" in page
        assert "a\\*b" in page or "**no**" in page
