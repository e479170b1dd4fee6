"""What was measured: latencies and failures by kind, and how late the load generator itself was."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scripts.benchmarks.machine_probe import MachineFigures

LATE_S = 0.005  # if a hundredth of all requests is sent later than this, the generator was too slow


def quantile(values: Sequence[float], share: float) -> float | None:
    """Returns the least value that at least this share of the values does not exceed.

    None if the values are too few to know: below 100 values, nothing is the slowest hundredth.
    """
    if len(values) < round(1 / (1 - share)):
        return None
    # Rounded, because 0.99 * 100 may be slightly more than 99.
    return sorted(values)[math.ceil(round(share * len(values), 6)) - 1]


@dataclass
class KindFigures:
    """Latencies are in seconds, from the moment when a request was due, and of successful requests only."""

    latencies: list[float] = field(default_factory=list)
    counted_from: list[float] = field(default_factory=list)  # the moment of each latency; heartbeats have none
    failures: Counter[str] = field(default_factory=Counter)
    # Not sent, because it needs the result of another request that is not answered yet, such as a code.
    skipped: int = 0

    @property
    def due(self) -> int:
        return len(self.latencies) + self.failures.total() + self.skipped

    def calm_latencies(self, machine: MachineFigures) -> list[float]:
        """Returns the latencies that no slow period of the machine has changed."""
        answers = zip(self.counted_from, self.latencies, strict=False)
        return [latency for begin, latency in answers if machine.was_calm(begin, begin + latency)]


@dataclass
class Figures:
    kinds: dict[str, KindFigures] = field(default_factory=lambda: defaultdict(KindFigures))
    lags: list[float] = field(default_factory=list)  # seconds from the moment when a request was due until it was sent
    refusals: list[float] = field(default_factory=list)  # seconds until each 503, from the moment it was due
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of the load generator
    machine: MachineFigures = field(default_factory=MachineFigures)

    def answered(self, kinds: Iterable[str]) -> int:
        return sum(len(self.kinds[kind].latencies) for kind in kinds)

    def due(self, kinds: Iterable[str]) -> int:
        return sum(self.kinds[kind].due for kind in kinds)

    @property
    def failures(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for kind in self.kinds.values():
            total.update(kind.failures)
        return total

    @property
    def skipped(self) -> int:
        return sum(kind.skipped for kind in self.kinds.values())

    @property
    def is_generator_late(self) -> bool:
        """Whether the latencies are also those of a generator that could not keep the rate."""
        lag = quantile(self.lags, 0.99) if len(self.lags) >= 100 else max(self.lags, default=0.0)
        return (lag or 0.0) > LATE_S
