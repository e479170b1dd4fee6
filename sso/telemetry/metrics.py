"""The metrics of a worker: durations of requests, counters and gauges. For Prometheus if SSO_METRICS_BIND is set."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from sso.telemetry.counters import DomainCounter

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})  # a client may send any
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30)  # seconds
EXPORT_INTERVAL_S = 1.0
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


async def export_to_prometheus(
    gauges: Sequence[WorkerGauge],
    counters: Sequence[DomainCounter],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Writes gauges and counters to the shared directory once a second, and the counters once more at the end.

    A scrape returns the sum of a gauge over the live workers, and of a counter over all workers since the start.
    """
    from prometheus_client import Gauge

    exported = [
        (Gauge(f"sso_{gauge.name}", gauge.description, multiprocess_mode="livesum"), gauge.read) for gauge in gauges
    ]
    exported_counters = [PrometheusCounter(counter) for counter in counters]
    task_status.started()
    try:
        while True:
            for prometheus_gauge, read in exported:
                prometheus_gauge.set(read())
            for exported_counter in exported_counters:
                exported_counter.export()
            await trio.sleep(EXPORT_INTERVAL_S)
    finally:
        for exported_counter in exported_counters:
            exported_counter.export()


class PrometheusCounter:
    """Adds to a counter of Prometheus what was counted since the last export."""

    def __init__(self, counter: DomainCounter) -> None:
        from prometheus_client import Counter

        self._source = counter
        self._counter = Counter(f"sso_{counter.name}", counter.description, counter.labels)
        self._exported: dict[tuple[str, ...], int] = {}
        for labels in counter.begins_with:
            self._counter.labels(*labels)

    def export(self) -> None:
        for labels, count in self._source.counts.items():
            if added := count - self._exported.get(labels, 0):
                self._counter.labels(*labels).inc(added)
                self._exported[labels] = count
