"""Measures how the service scales: with workers, with a large database, and over a month.

* Workers: the capacity of the mix of ``scripts/bench latency`` with 1, 2 and 4 workers. Each service may use as many
  processors as it has workers, so that the rest is left to the client and PostgreSQL.
* Size: logins, refreshes, userinfo, held polls, checks and pages of the console, with 10 million users, 100 million
  audit entries and a million game sessions next to a small database. Filling it takes long, and 80 GB by estimate; with
  ``--keep FOLDER`` the next run uses it again.
* Month: logins and game sessions whose rows expire, in days that last some seconds, with the sizes of tables and
  indexes, dead rows and runs of autovacuum.

Each part also runs with smaller numbers: ``scripts/bench scale --users 10000 --audit 10000 --days 5 --workers 1,2``.
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from scripts.benchmarks import scale_month, scale_size
from scripts.benchmarks.growth import numbers
from scripts.benchmarks.latency import Load, whole_load
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.report import Steps, arguments, process_tree, show
from sso.serve.process_tuning import raise_open_file_limit
from tests.kit import postgres

PARTS = ("workers", "size", "month")


def by_workers(counts: Sequence[int], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures the capacities by turns, so that other load on the machine affects all of them alike."""
    steps = Steps(len(counts) * options.rounds)
    available = sorted(os.sched_getaffinity(0))
    found: dict[int, list[float]] = {count: [] for count in counts}
    with ExitStack() as stack:
        database = stack.enter_context(postgres.running())
        database.set_durable(True)
        loads = {count: stack.enter_context(_pinned(database, available[:count], count)) for count in counts}
        for _ in range(options.rounds):
            for count, load in loads.items():
                steps.next(f"{count} workers")
                found[count].append(load.capacity(options.seconds))
    first = statistics.median(found[counts[0]])
    return [
        {
            "workers": count,
            "operations per s": statistics.median(found[count]),
            f"in relation to {counts[0]}": round(statistics.median(found[count]) / first, 2),
            "note": f"the machine has {len(available)} processors" if count > len(available) else "",
        }
        for count in counts
    ]


@contextmanager
def _pinned(database: postgres.Postgres, processors: Sequence[int], workers: int) -> Iterator[Load]:
    with running_service(database.fresh(), SSO_WORKERS=str(workers)) as (server, target):
        assert server.process is not None
        for pid in process_tree(server.process.pid):
            os.sched_setaffinity(pid, processors)
        load = whole_load(f"{workers} workers", server, target)
        try:
            yield load
        finally:
            load.generator.close()


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--parts", default=",".join(PARTS), help="out of: " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements")
    parser.add_argument("--workers", type=numbers, default="1,2,4", help="numbers to measure, separated by commas")
    parser.add_argument("--users", type=int, default=10_000_000, help="of the large database; a tenth have a session")
    parser.add_argument("--audit", type=int, default=100_000_000, help="entries of the audit trail")
    parser.add_argument("--keep", type=Path, help="folder of the large database, for the next run")
    parser.add_argument("--days", type=int, default=30, help="simulated days")
    parser.add_argument("--day-seconds", type=int, default=20, help="seconds that a simulated day lasts")
    parser.add_argument("--logins", type=float, default=40.0, help="logins and game sessions per second of a day")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts: expected {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    raise_open_file_limit()
    measure: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "workers": lambda: by_workers(options.workers, options),
        "size": lambda: scale_size.rows(options),
        "month": lambda: scale_month.rows(options.days, options.day_seconds, options.logins),
    }
    found = {part: measure[part]() for part in parts}
    for rows in found.values():
        show(rows, None)
        print()
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
