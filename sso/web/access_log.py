"""The access log: one log line and one count in the metrics for each response."""

import time

import structlog

from sso.metrics import Metrics

MAX_METHOD = 20  # characters of a method in the log: a client may send any


class AccessLog:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = structlog.get_logger().bind()  # bound once: the lazy logger would bind again for each line

    def record(self, method: str, route: str, status: int, started: float, **fields: str) -> None:
        """Logs and counts a response. ``route`` is the URL rule; the path and the query may contain secrets."""
        seconds = time.perf_counter() - started
        self._metrics.request(method, route, status, seconds)
        ms = round(seconds * 1e3, 1)
        self._log.info("request.answered", method=method[:MAX_METHOD], route=route, status=status, ms=ms, **fields)
