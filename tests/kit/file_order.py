"""The order of the tests: files that take long first, since one at the end would run alone.

``tests/durations.json`` has the seconds of each file. ``scripts/test --store-durations`` writes it. With
``--shuffle SEED``, the order of the other files and of the tests in each file is random.
"""

import json
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

TESTS = Path(__file__).parents[1]
DURATIONS = TESTS / "durations.json"
USUAL_S = 1  # shorter files are not stored
LONG_S = 8  # files that take longer come first
# Files that share a browser or a server with settings of its own.
GROUPS = (("browser/",), ("gsid/",), ("upstream/", "players/", "accounts/registration/", "races/test_guests.py"))
GROUP_COUNT = len(GROUPS) + 1  # with the files that are in no group


def durations() -> defaultdict[str, float]:
    """Returns the seconds of each file, by its path below ``tests``."""
    return defaultdict(lambda: USUAL_S, json.loads(DURATIONS.read_text()))


def order_files(items: list[pytest.Item], seed: int) -> None:
    """Sorts the tests. All processes of a run must use the same seed."""
    seconds = durations()
    files = {_file(item.nodeid): 0.0 for item in items}
    if seed:
        random = Random(seed)
        random.shuffle(items)
        files = {file: random.random() for file in files}
    for file in files:
        if seconds[file] > LONG_S:
            files[file] = -seconds[file]
    items.sort(key=lambda item: (files[_file(item.nodeid)], _file(item.nodeid)))


def group_numbers(items: list[pytest.Item]) -> list[int]:
    """Returns the number of the group of each test, or that of the files in no group."""
    files = [_file(item.nodeid) for item in items]
    return [next((n for n, group in enumerate(GROUPS) if file.startswith(group)), len(GROUPS)) for file in files]


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
