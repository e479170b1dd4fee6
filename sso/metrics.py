"""Counts requests for Prometheus. Off unless SSO_METRICS_BIND is set."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})  # a client may send any


class Metrics:
    """Records the requests of this process; does nothing unless it is enabled."""

    def __init__(self, enabled: bool) -> None:
        self._observe: Callable[[str, str, int, float], None] | None = _recorder() if enabled else None

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        if self._observe is not None:
            self._observe(method, route, status, seconds)


def prepare_multiprocess_directory() -> Path:
    """Creates the directory in which the processes share their counts.

    Must be called before the first import of prometheus_client, which reads the variable then.
    """
    folder = Path(tempfile.mkdtemp(prefix="sso-metrics-"))
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    return folder


def _recorder() -> Callable[[str, str, int, float], None]:
    from prometheus_client import Histogram

    seconds = Histogram(
        "sso_request_seconds",
        "Time to answer a request",
        ("method", "route", "status"),
        buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30),
    )

    children: dict[tuple[str, str, int], Histogram] = {}  # `labels` takes a lock and converts three strings each time

    def observe(method: str, route: str, status: int, duration_s: float) -> None:
        labels = (method if method in METHODS else "other", route, status)
        child = children.get(labels)
        if child is None:
            child = children[labels] = seconds.labels(labels[0], route, str(status))
        child.observe(duration_s)

    return observe
