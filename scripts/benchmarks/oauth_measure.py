"""Measurements of a server, and the rows of the result table."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.benchmarks.http_clients import BenchmarkError
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_work import WORK, Load
from scripts.benchmarks.report import cpu_seconds, resident_mb


@dataclass
class Subject:
    """A running server, its processes and the processes of its database."""

    target: Target
    own: Callable[[], list[int]]
    database: Callable[[], list[int]]


@dataclass(frozen=True)
class Figures:
    per_second: float
    us: float
    database_us: float
    p50: float
    p99: float
    rss: float
    failures: int

    @property
    def whole_us(self) -> float:
        return self.us + self.database_us


def measure(subject: Subject, work: str, connections: int, seconds: float) -> Figures:
    return figures(subject, WORK[work](subject.target, connections, seconds))


def figures(subject: Subject, load: Load) -> Figures:
    own = subject.own()
    database_before = {pid: cpu_seconds([pid]) for pid in subject.database()}
    before = cpu_seconds(own)
    tally = load()
    used = cpu_seconds(own) - before
    answers = len(tally.took)
    if not answers:
        raise BenchmarkError(f"nothing succeeded: {tally.failures[:1]}")
    return Figures(
        per_second=answers / tally.seconds,
        us=used / answers * 1e6,
        database_us=sum(now - was for was, now in _surviving(database_before)) / answers * 1e6,
        p50=tally.quantile(0.5) * 1e3,
        p99=tally.quantile(0.99) * 1e3,
        rss=resident_mb(subject.own()),
        failures=len(tally.failures),
    )


def _surviving(before: Mapping[int, float]) -> Iterator[tuple[float, float]]:
    """Yields the CPU time before and after of processes that still run. PostgreSQL may end processes in between."""
    for pid, was in before.items():
        now = cpu_seconds([pid])
        if now >= was:
            yield was, now


def row(work: str, rounds: Sequence[Figures]) -> dict[str, Any]:
    def median(of: Callable[[Figures], float]) -> float:
        return statistics.median(map(of, rounds))

    rates = [one.per_second for one in rounds]
    return {
        "work": work,
        "per second": median(lambda one: one.per_second),
        "least": min(rates),
        "most": max(rates),
        "CPU us": median(lambda one: one.us),
        "database us": median(lambda one: one.database_us),
        "p50 ms": median(lambda one: one.p50),
        "p99 ms": median(lambda one: one.p99),
        "RSS MiB": max(one.rss for one in rounds),
        "failures": sum(one.failures for one in rounds),
    }


@dataclass
class Compared:
    """Rounds of our service and of a peer, with a note if the peer failed."""

    rounds: list[tuple[Figures, Figures]] = field(default_factory=list)
    note: str = ""

    def rows(self, ours: str, peer: str, work: str) -> list[dict[str, Any]]:
        """Returns a row of our service and one of the peer, which has the ratios of rate and CPU time."""
        note = {"note": self.note} if self.note else {}
        if not self.rounds:
            return [{"server": peer, "work": work, **note}]
        shown = {
            "ratio": spread([mine.per_second / theirs.per_second for mine, theirs in self.rounds]),
            "CPU ratio": spread([theirs.whole_us / mine.whole_us for mine, theirs in self.rounds]),
        }
        return [
            {"server": ours} | row(work, [mine for mine, _ in self.rounds]) | dict.fromkeys(shown),
            {"server": peer} | row(work, [theirs for _, theirs in self.rounds]) | shown | note,
        ]


def spread(ratios: Sequence[float]) -> str:
    """Returns the median, and the range in parentheses."""
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
