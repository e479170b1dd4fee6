"""What is told of every request: a line in the log and a count. One place, whoever answers it."""

import time

import structlog

from sso.metrics import Metrics

MAX_METHOD = 20  # characters of a method in the log: a client may send any


class AccessLog:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = structlog.get_logger().bind()  # once: the lazy one makes a new one for each line

    def request(self, method: str, route: str, status: int, started: float, **more: str) -> None:
        """``route`` is the rule, not the path or the query: those may hold a secret."""
        seconds = time.perf_counter() - started
        self._metrics.request(method, route, status, seconds)
        ms = round(seconds * 1e3, 1)
        self._log.info("request", method=method[:MAX_METHOD], route=route, status=status, ms=ms, **more)
