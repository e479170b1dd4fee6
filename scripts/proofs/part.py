"""What the parts of ``scripts/prove`` have in common.

A part is a module of this package with the part's name. Its docstring's first paragraph goes into the report. It has

    def run(minutes: float, progress: Progress) -> PartResult

which works for about so many minutes, calls ``progress("12 of 30 …")`` as often as it likes, ends every process that it
started, and returns what it did. An exception becomes a violation, and the other parts still run. Requests that are
sent with httpx are counted by the caller; a part with other clients sets ``requests`` itself. To add a part, write the
module and give it a share of the minutes in ``SHARES`` (``__main__.py``).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[str], None]


@dataclass
class PartResult:
    rounds: int = 0  # repetitions of whatever the part repeats: examples, inputs, samples
    requests: int = 0
    faults: dict[str, int] = field(default_factory=dict)  # how often each kind was injected
    invariants: list[str] = field(default_factory=list)  # what was checked, as sentences
    violations: list[str] = field(default_factory=list)
    planted: dict[str, bool] = field(default_factory=dict)  # whether each planted fault was found
    figures: list[dict[str, Any]] = field(default_factory=list)  # rows of a table, all with the same columns
    not_run: dict[str, str] = field(default_factory=dict)  # what was left out, and why


class Deadline:
    """The end of a part, or of a piece of it."""

    def __init__(self, minutes: float) -> None:
        self._begin = time.monotonic()
        self._seconds = minutes * 60

    @property
    def is_over(self) -> bool:
        return self.seconds_left <= 0

    @property
    def seconds_left(self) -> float:
        return self._begin + self._seconds - time.monotonic()

    def __str__(self) -> str:
        """Returns how far it is: "30 of 120 s"."""
        return f"{time.monotonic() - self._begin:.0f} of {self._seconds:.0f} s"
