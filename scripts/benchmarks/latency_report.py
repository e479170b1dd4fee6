"""The tables of ``scripts/bench latency``, in the format of the documentation."""

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from scripts.benchmarks.open_loop.figures import LATE_S, Figures, quantile
from scripts.benchmarks.report import progress

SHARES = (0.5, 0.99, 0.999)
BUSY = 0.5  # processes that want to run before the measurement: other programs use the machine


@dataclass
class Contest:
    """A server with a mix of requests: its capacity in operations per second, and the figures at each level."""

    name: str
    shares: Mapping[str, int]
    capacity: float = 0.0
    levels: dict[int, Figures] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """The kinds in the order of the mix; those that others cause come last."""
        met = [kind for figures in self.levels.values() for kind in figures.kinds]
        return list(dict.fromkeys([*self.shares, *met]))


def print_report(
    contests: Sequence[Contest], levels: Sequence[int], seconds: float, busy: float, out: Path | None
) -> None:
    progress("")
    print(
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"{seconds:.0f} s for each level; load average before the start: {busy:.1f}"
    )
    if busy > BUSY:
        print("Other programs used the machine: do not publish these latencies.")
    for contest in contests:
        print(f"\n{contest.name}: capacity {contest.capacity:,.0f} operations per second. p50 / p99 / p99.9 in ms:\n")
        print(simple_table(_latency_rows(contest, levels)))
        if any(figures.machine.slow for figures in contest.levels.values()):
            print("\nWithout requests that came while the machine itself was slow:\n")
            print(simple_table(_calm_rows(contest, levels)))
        if any(figures.failures for figures in contest.levels.values()):
            print("\nFailures:\n")
            print(simple_table(_failure_rows(contest, levels)))
        for level, figures in contest.levels.items():
            if figures.is_generator_late:
                print(f"\nAt {level} % the generator was late: these latencies are too large.")
        if left_out := [level for level in levels if level not in contest.levels]:
            print(f"\nLeft out, because the time was over: {', '.join(f'{level} %' for level in left_out)}")
    if out:
        out.write_text(json.dumps(list(map(as_json, contests)), indent=2) + "\n")


def simple_table(rows: Sequence[Sequence[str]]) -> str:
    """Returns a simple table of reStructuredText. The first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join("=" * width for width in widths)
    texts = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return "\n".join([line, texts[0], line, *texts[1:], line])


def milliseconds(values: Sequence[float], shares: Sequence[float] = SHARES) -> str:
    """Returns quantiles, with a dash for one of which there are too few values."""
    found = [quantile(values, share) for share in shares]
    return " / ".join("-" if value is None else f"{value * 1000:.{0 if value >= 0.1 else 1}f}" for value in found)


def _latency_rows(contest: Contest, levels: Sequence[int]) -> list[list[str]]:
    mix = list(contest.shares)
    line = partial(_row, contest, levels)
    return [
        _head(levels),
        *(line(kind, partial(_latencies, kind=kind)) for kind in contest.kinds),
        line("due per second", lambda figures: f"{figures.due(mix) / figures.seconds:,.0f}"),
        line("answered per second", lambda figures: f"{figures.answered(mix) / figures.seconds:,.0f}"),
        line("refused with 503", lambda figures: f"{figures.failures['503']:,}"),
        line("other failures", lambda figures: f"{figures.failures.total() - figures.failures['503']:,}"),
        line("not sent, needs another", lambda figures: f"{figures.skipped:,}"),
        line("lag of the generator", lambda figures: milliseconds(figures.lags)),
        line("CPU of the generator, %", lambda figures: f"{100 * figures.cpu_seconds / figures.seconds:.0f}"),
        line("CPU of the machine, %", lambda figures: f"{100 * figures.machine.busy:.0f}"),
        line("slow machine, % of the time", lambda figures: f"{100 * figures.machine.slow_share:.1f}"),
    ]


def _latencies(figures: Figures, kind: str) -> str:
    return milliseconds(figures.kinds[kind].latencies)


def _calm_rows(contest: Contest, levels: Sequence[int]) -> list[list[str]]:
    def cell(figures: Figures, kind: str) -> str:
        return milliseconds(figures.kinds[kind].calm_latencies(figures.machine))

    return [_head(levels), *(_row(contest, levels, kind, partial(cell, kind=kind)) for kind in contest.shares)]


def _head(levels: Sequence[int]) -> list[str]:
    return ["Kind", *(f"{level} %" for level in levels)]


def _row(contest: Contest, levels: Sequence[int], name: str, cell: Callable[[Figures], str]) -> list[str]:
    return [name, *(cell(contest.levels[level]) if level in contest.levels else "" for level in levels)]


def _failure_rows(contest: Contest, levels: Sequence[int]) -> list[list[str]]:
    def cell(level: int, kind: str) -> str:
        figures = contest.levels.get(level)
        return (
            ", ".join(f"{text}: {count:,}" for text, count in figures.kinds[kind].failures.items()) if figures else ""
        )

    rows = [[kind, *(cell(level, kind) for level in levels)] for kind in contest.kinds]
    return [_head(levels), *(row for row in rows if any(row[1:]))]


def as_json(contest: Contest) -> dict[str, Any]:
    return {
        "server": contest.name,
        "capacity": contest.capacity,
        "levels": {
            str(level): {
                "seconds": figures.seconds,
                "lag_ms": _quantiles_ms(figures.lags),
                "generator_was_late": figures.is_generator_late,
                "generator_cpu_s": figures.cpu_seconds,
                "machine_busy": figures.machine.busy,
                "machine_slow": figures.machine.slow_share,
                "kinds": {
                    kind: {
                        "due": measured.due,
                        "answered": len(measured.latencies),
                        "failures": dict(measured.failures),
                        "skipped": measured.skipped,
                        **_quantiles_ms(measured.latencies),
                        "while_the_machine_was_not_slow": _quantiles_ms(measured.calm_latencies(figures.machine)),
                    }
                    for kind, measured in figures.kinds.items()
                },
            }
            for level, figures in contest.levels.items()
        },
        "late_is_ms": LATE_S * 1000,
    }


def _quantiles_ms(values: Sequence[float]) -> dict[str, float | None]:
    found = {f"p{share * 100:g}": quantile(values, share) for share in SHARES}
    return {name: None if value is None else value * 1000 for name, value in found.items()}
