"""The access log: one log line and one count in the metrics for each response, and the end of its span."""

import time

import structlog

from sso.telemetry.metrics import Metrics
from sso.telemetry.spans import RequestSpan
from sso.web.request_tracing import RequestTracing

MAX_METHOD = 20  # characters of a method in the log: a client may send any


class AccessLog:
    def __init__(self, metrics: Metrics, tracing: RequestTracing | None = None) -> None:
        self._metrics = metrics
        self.tracing = tracing
        self._log = structlog.get_logger().bind()  # bound once: the lazy logger would bind again for each line

    def record(self, method: str, route: str, status: int, started: float, span: RequestSpan | None = None) -> None:
        """Logs and counts a response. ``route`` is the URL rule; the path and the query may contain secrets."""
        seconds = time.perf_counter() - started
        self._metrics.request(method, route, status, seconds)
        ms = round(seconds * 1e3, 1)
        self._log.info("request.answered", method=method[:MAX_METHOD], route=route, status=status, ms=ms)
        if span is not None:
            span.answered(status)
