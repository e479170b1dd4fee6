"""Serves the Prometheus metrics of all processes, on a listener of their own."""

import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio

from sso.serve.http1 import server
from sso.serve.server_limits import ServerLimits
from sso.telemetry.metrics import forget_gauges_of_ended_workers

MAX_CONNECTIONS = 64  # per client address
CACHE_S = 1.0


def serve_metrics(sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
    """Serves ``GET /metrics`` with the metrics of all processes. Never returns."""
    trio.run(
        partial(server.serve, MetricsApp(), sockets, trio.Event(), ready, ServerLimits(per_address=MAX_CONNECTIONS))
    )


class MetricsApp:
    """The ASGI application. It collects the metrics in a thread, and caches the result for a second."""

    def __init__(self) -> None:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
        from prometheus_client.multiprocess import MultiProcessCollector

        self._registry = CollectorRegistry()
        MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._type = CONTENT_TYPE_LATEST.encode()
        self._collecting = trio.Lock()
        self._cached = b""
        self._cached_until = float("-inf")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match scope["type"]:
            case "lifespan":
                for phase in ("startup", "shutdown"):
                    await receive()
                    await send({"type": f"lifespan.{phase}.complete"})
            case "websocket":
                await send({"type": "websocket.close"})
            case _ if scope["path"] != "/metrics":
                await self._send(send, 404, b"not found\n", b"text/plain")
            case _ if scope["method"] not in ("GET", "HEAD"):
                await self._send(send, 405, b"method not allowed\n", b"text/plain")
            case _:
                await self._send(send, 200, await self._latest(), self._type)

    async def _latest(self) -> bytes:
        async with self._collecting:
            if trio.current_time() >= self._cached_until:
                self._cached = await trio.to_thread.run_sync(self._collect)
                self._cached_until = trio.current_time() + CACHE_S
            return self._cached

    def _collect(self) -> bytes:
        from prometheus_client import generate_latest

        forget_gauges_of_ended_workers()
        return generate_latest(self._registry)

    async def _send(self, send: Any, status: int, data: bytes, content_type: bytes) -> None:
        headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})
