"""Counts requests for Prometheus. Off unless SSO_METRICS_BIND is set."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


class Metrics:
    """Counts requests; without Prometheus it does nothing and costs nothing."""

    def __init__(self, enabled: bool) -> None:
        self._observe: Callable[[str, str, int, float], None] | None = _recorder() if enabled else None

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        if self._observe is not None:
            self._observe(method, route, status, seconds)


def prepare_multiprocess_directory() -> Path:
    """Where the processes leave their counts. To be called before the library is imported anywhere."""
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

    known: dict[tuple[str, str, int], Histogram] = {}  # looked up by the library, each takes a lock and three texts

    def observe(method: str, route: str, status: int, took: float) -> None:
        name = (method if method in METHODS else "other", route, status)
        child = known.get(name)
        if child is None:
            child = known[name] = seconds.labels(name[0], route, str(status))
        child.observe(took)

    return observe


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
