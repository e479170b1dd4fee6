"""Notices when the machine itself is slow: other machines on the same host take processor time from it.

A process repeats a small piece of work and measures the processor time that it takes. Other processes of this machine
hardly change that. If it takes much more than usual, the processor itself was slow. Linux need not count that as stolen
time, and a process that only sleeps does not notice it.
"""

import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PAUSE_S = 0.008
STEPS = 1500  # about a tenth of a millisecond
PRECEDENCE = -15  # before the processes that it watches, if it runs as root
TIMES_AS_SLOW = 1.8  # as usual
MARGIN_S = 0.010  # before and after, since it looks only now and then
READY = "ready"


class Sample(NamedTuple):
    begin: float
    end: float
    cpu_seconds: float


class Period(NamedTuple):
    begin: float
    end: float


@dataclass
class MachineFigures:
    """What the machine did during a measurement."""

    seconds: float = 0.0
    busy: float = 0.0  # share of the processor time that was used
    slow: list[Period] = field(default_factory=list)

    @property
    def slow_share(self) -> float:
        return sum(period.end - period.begin for period in self.slow) / self.seconds if self.seconds else 0.0

    def was_calm(self, begin: float, end: float) -> bool:
        """Returns whether this time touches no slow period.

        A period counts twice as long as it was: afterwards, servers still do what has waited.
        """
        return not any(begin < one.end + (one.end - one.begin) and end > one.begin for one in self.slow)


@contextmanager
def watched_machine() -> Iterator[MachineFigures]:
    """Fills in the figures at the end."""
    figures = MachineFigures()
    probe = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert probe.stdout
        probe.stdout.readline()
        began, before = time.perf_counter(), _processor_ticks()
        yield figures
        figures.seconds = time.perf_counter() - began
        idle, total = (now - then for now, then in zip(_processor_ticks(), before, strict=True))
        figures.busy = 1 - idle / total if total else 0.0
        figures.slow = slow_periods([Sample(*one) for one in json.loads(probe.communicate()[0])])
    finally:
        probe.kill()
        probe.wait()


def slow_periods(samples: Sequence[Sample]) -> list[Period]:
    """Returns when the work took much more processor time than usual. Periods that overlap are one."""
    if not samples:
        return []
    limit = TIMES_AS_SLOW * statistics.median(sample.cpu_seconds for sample in samples)
    periods: list[Period] = []
    for sample in samples:
        if sample.cpu_seconds <= limit:
            continue
        period = Period(sample.begin - MARGIN_S, sample.end + MARGIN_S)
        if periods and period.begin <= periods[-1].end:
            period = Period(periods.pop().begin, period.end)
        periods.append(period)
    return periods


def _processor_ticks() -> tuple[int, int]:
    """Returns the idle ticks of all processors, and all of their ticks."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _work() -> int:
    total = 0
    for number in range(STEPS):
        total += number * number % 7
    return total


def _probe() -> None:
    """Samples until its standard input ends, and prints what it has measured."""
    with suppress(OSError):
        os.nice(PRECEDENCE)
    samples: list[Sample] = []
    print(READY, flush=True)
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        begin, cpu = time.perf_counter(), time.thread_time()
        _work()
        samples.append(Sample(begin, time.perf_counter(), time.thread_time() - cpu))
    json.dump(samples, sys.stdout)


if __name__ == "__main__":
    _probe()
