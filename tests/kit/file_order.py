"""The order of the tests: files that take long first, since one at the end would run alone. The rest is random.

``tests/durations.json`` has the seconds of each file. ``scripts/test --store-durations`` writes it. The order of the
other files and of the tests in each file is another one in each run, which prints its seed; ``--seed N`` repeats it.
Files of one folder stay together, because they share servers.
"""

import json
from collections import defaultdict
from pathlib import Path
from random import Random, SystemRandom

import pytest

TESTS = Path(__file__).parents[1]
DURATIONS = TESTS / "durations.json"
USUAL_S = 1  # shorter files are not stored
LONG_S = 8  # files that take longer come first
# Files that share a browser or a server with settings of its own. Those with a server of two workers are another group.
GROUPS = (("browser/",), ("upstream/", "players/", "accounts/registration/", "races/test_guests.py"), ("gsid/",))
GROUP_COUNT = len(GROUPS) + 2  # with the files that are in no group


def durations() -> defaultdict[str, float]:
    """Returns the seconds of each file, by its path below ``tests``."""
    return defaultdict(lambda: USUAL_S, json.loads(DURATIONS.read_text()))


def new_seed() -> int:
    return SystemRandom().randrange(1, 100_000)


def shuffle_tests(items: list[pytest.Item], seed: int) -> None:
    """Shuffles the tests, unless the seed is 0. All processes of a run must use the same seed."""
    if seed:
        Random(seed).shuffle(items)


def order_files(items: list[pytest.Item], seed: int) -> None:
    """Puts the tests of each file together, the files that take long first, and the others in a random order."""
    seconds = durations()
    places = dict.fromkeys((place for item in items for place in _places(_file(item.nodeid))), 0.0)
    if seed:
        random = Random(seed)
        places = {place: random.random() for place in sorted(places)}

    def key(item: pytest.Item) -> list[tuple[float, str]]:
        file = _file(item.nodeid)
        order = [(places[place], place) for place in _places(file)]
        return [(-seconds[file], file)] if seconds[file] > LONG_S else order

    items.sort(key=key)


def _places(file: str) -> list[str]:
    """Returns the file after the folders that contain it."""
    return [*reversed([str(parent) for parent in Path(file).parents]), file]


def group_numbers(items: list[pytest.Item]) -> list[int]:
    """Returns the number of the group of each test; the last one is that of the files in no group."""
    return [_group_number(item) for item in items]


def _group_number(item: pytest.Item) -> int:
    file = _file(item.nodeid)
    with_two_workers = item.get_closest_marker("two_workers") is not None
    members = [*(file.startswith(group) for group in GROUPS), with_two_workers, True]
    return members.index(True)


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
