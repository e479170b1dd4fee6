"""Measures what telemetry costs: the CPU time of userinfo and refresh requests without it, with the log of slow
statements alone (the default), and with traces and metrics sent to a local collector.

The services run side by side, each with its own database, and are measured in turns, so that other load on the machine
affects all of them alike. The ratio compares the CPU time of a request with that of the first service, in each round.
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from scripts.benchmarks.oauth_measure import Figures, Subject, measure
from scripts.benchmarks.oauth_service import service_subject
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.report import arguments, progress, show
from tests.kit import postgres

WARM_S = 1.0
WORK_NAMES = ("userinfo", "refresh")
NOTHING = "nothing"


def variants(endpoint: str) -> dict[str, dict[str, str]]:
    """Returns the settings of each service."""
    export = {"SSO_OTLP_ENDPOINT": endpoint}
    return {
        NOTHING: {"SSO_SLOW_STATEMENT_MS": "0"},
        "slow statements": {},
        "and metrics": {**export, "SSO_OTLP_SAMPLE_PERCENT": "0"},
        "and 1 % traced": {**export, "SSO_OTLP_SAMPLE_PERCENT": "1"},
        "and 100 % traced": {**export, "SSO_OTLP_SAMPLE_PERCENT": "100"},
    }


@contextmanager
def collector() -> Iterator[str]:
    """Runs a collector in a process of its own, whose CPU time is not counted. Yields its address."""
    command = [sys.executable, "-m", "scripts.benchmarks.telemetry_collector"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def rows(found: Mapping[tuple[str, str], list[Figures]], work: str) -> Iterator[dict[str, Any]]:
    base = found[work, NOTHING]
    for name in (name for what, name in found if what == work):
        figures = found[work, name]
        ratios = [one.us / first.us for one, first in zip(figures, base, strict=True)]
        yield {
            "work": work,
            "enabled": name,
            "CPU us": statistics.median(one.us for one in figures),
            "ratio": f"{statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})",
            "per second": statistics.median(one.per_second for one in figures),
            "p99 ms": statistics.median(one.p99 for one in figures),
            "RSS MiB": max(one.rss for one in figures),
            "failures": sum(one.failures for one in figures),
        }


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.set_defaults(seconds=5.0)  # as long as the interval of exports, so that each measurement has one
    parser.add_argument("--rounds", type=int, default=5, help="number of measurements")
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    with ExitStack() as stack:
        database = stack.enter_context(postgres.running())
        subjects: dict[str, Subject] = {}
        for name, settings in variants(stack.enter_context(collector())).items():
            progress(f"starting: {name} …")
            dsn = database.fresh()
            subjects[name] = stack.enter_context(service_subject(dsn, database.pid, 1, **settings))
            for work in WORK_NAMES:
                WORK[work](subjects[name].target, options.connections, WARM_S)()
        found: dict[tuple[str, str], list[Figures]] = {(work, name): [] for work in WORK_NAMES for name in subjects}
        for turn in range(options.rounds):
            for work, name in list(found) if turn % 2 else reversed(list(found)):  # the order must not favour any
                progress(f"round {turn + 1} of {options.rounds}, {work}, {name} …")
                found[work, name].append(measure(subjects[name], work, options.connections, options.seconds))
    show([row for work in WORK_NAMES for row in rows(found, work)], options.out)


if __name__ == "__main__":
    main()
