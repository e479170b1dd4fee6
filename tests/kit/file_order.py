"""The order of the test files: long ones first, since with several processes a long file at the end would run alone.

``tests/durations.json`` has their seconds. ``scripts/test --store-durations`` writes it.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest

DURATIONS = Path(__file__).parents[1] / "durations.json"
USUAL_S = 3  # shorter files are not stored


def order_files(items: list[pytest.Item]) -> None:
    seconds = json.loads(DURATIONS.read_text())
    items.sort(key=lambda item: -seconds.get(_file(item.nodeid), USUAL_S))


class DurationRecorder:
    """A plugin that stores the durations of the files at the end of a run."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[_file(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        stored = {file: round(seconds) for file, seconds in sorted(self._seconds.items()) if seconds > USUAL_S}
        DURATIONS.write_text(json.dumps(stored, indent=1) + "\n")


def _file(node_id: str) -> str:
    return node_id.partition("::")[0].removeprefix("tests/")
