"""The metrics of a worker: durations of requests, and gauges. Exported to Prometheus if SSO_METRICS_BIND is set."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import trio

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})  # a client may send any
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30)  # seconds
GAUGE_INTERVAL_S = 1.0
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"

RequestObserver = Callable[[str, str, int, float], None]  # method, route, status, seconds
StatementObserver = Callable[[str], None]  # name of a statement


class WorkerGauge(NamedTuple):
    """A number that changes up and down; each worker has its own."""

    name: str
    description: str
    read: Callable[[], int]


class Metrics:
    """Passes each request of this process to the observers."""

    def __init__(self, observers: Sequence[RequestObserver] = ()) -> None:
        self._observers = tuple(observers)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        for observe in self._observers:
            observe(method, route, status, seconds)


def prepare_multiprocess_directory() -> Path:
    """Creates the directory in which the processes share their counts.

    Must be called before the first import of prometheus_client, which reads the variable then.
    """
    folder = Path(tempfile.mkdtemp(prefix="sso-metrics-"))
    os.environ[_DIRECTORY] = str(folder)
    return folder


def forget_gauges_of_ended_workers() -> None:
    """Deletes the gauges of workers that were killed. Their requests stay counted."""
    for file in Path(os.environ[_DIRECTORY]).glob("gauge_live*.db"):  # gauge_livesum_<pid>.db
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except (ProcessLookupError, PermissionError):  # it has ended, or another account has got its pid
            file.unlink(missing_ok=True)


def prometheus_request_observer() -> RequestObserver:
    from prometheus_client import Histogram

    seconds = Histogram(
        "sso_request_seconds", "Time to answer a request", ("method", "route", "status"), buckets=BUCKETS
    )

    children: dict[tuple[str, str, int], Histogram] = {}  # `labels` takes a lock and converts three strings each time

    def observe(method: str, route: str, status: int, duration_s: float) -> None:
        labels = (method if method in METHODS else "other", route, status)
        child = children.get(labels)
        if child is None:
            child = children[labels] = seconds.labels(labels[0], route, str(status))
        child.observe(duration_s)

    return observe


def prometheus_slow_statement_observer() -> StatementObserver:
    from prometheus_client import Counter

    statements = Counter(
        "sso_database_slow_statements", "Statements that took at least SSO_SLOW_STATEMENT_MS", ("statement",)
    )
    return lambda name: statements.labels(name).inc()


async def export_gauges_to_prometheus(
    gauges: Sequence[WorkerGauge], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Writes the gauges to the shared directory once a second. A scrape returns the sum over the live workers."""
    from prometheus_client import Gauge

    exported = [
        (Gauge(f"sso_{gauge.name}", gauge.description, multiprocess_mode="livesum"), gauge.read) for gauge in gauges
    ]
    task_status.started()
    while True:
        for prometheus_gauge, read in exported:
            prometheus_gauge.set(read())
        await trio.sleep(GAUGE_INTERVAL_S)
