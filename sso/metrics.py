"""Prometheus metrics of all workers, on a listener of their own. Off unless SSO_METRICS_BIND is set."""

import os
import socket
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trio

from sso.serve.limits import ServerLimits

MAX_CONNECTIONS = 64  # per address
FRESH_S = 1.0


class Metrics:
    """Counts requests; without Prometheus it does nothing and costs nothing."""

    def __init__(self, enabled: bool) -> None:
        self._observe: Callable[[str, str, int, float], None] | None = _recorder() if enabled else None

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        if self._observe is not None:
            self._observe(method, route, status, seconds)


def prepare() -> Path:
    """Where the processes leave their counts. To be called before the library is imported anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="sso-metrics-"))
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    return folder


def serve(sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
    """Answer ``GET /metrics`` with the counts of all processes, for ever."""
    from sso.serve.http1 import server

    trio.run(
        partial(server.serve, MetricsApp(), sockets, trio.Event(), ready, ServerLimits(per_address=MAX_CONNECTIONS))
    )


class MetricsApp:
    """An ASGI application. Counts are collected in a thread, one at a time, and shared by requests of one second."""

    def __init__(self) -> None:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
        from prometheus_client.multiprocess import MultiProcessCollector

        self._registry = CollectorRegistry()
        MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._type = CONTENT_TYPE_LATEST.encode()
        self._collecting = trio.Lock()
        self._text = b""
        self._fresh_until = float("-inf")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match scope["type"]:
            case "lifespan":
                for moment in ("startup", "shutdown"):
                    await receive()
                    await send({"type": f"lifespan.{moment}.complete"})
            case "websocket":
                await send({"type": "websocket.close"})
            case _ if scope["path"] != "/metrics":
                await self._send(send, 404, b"not found\n", b"text/plain")
            case _ if scope["method"] not in ("GET", "HEAD"):
                await self._send(send, 405, b"method not allowed\n", b"text/plain")
            case _:
                await self._send(send, 200, await self._latest(), self._type)

    async def _latest(self) -> bytes:
        from prometheus_client import generate_latest

        async with self._collecting:
            if trio.current_time() >= self._fresh_until:
                self._text = await trio.to_thread.run_sync(generate_latest, self._registry)
                self._fresh_until = trio.current_time() + FRESH_S
            return self._text

    async def _send(self, send: Any, status: int, data: bytes, content_type: bytes) -> None:
        headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})


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
