"""Serves the Prometheus metrics of all processes, on a listener of their own."""

import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio

from sso.serve.http1 import server
from sso.serve.server_limits import ServerLimits

MAX_CONNECTIONS = 64  # per address
FRESH_S = 1.0


def serve(sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
    """Answer ``GET /metrics`` with the counts of all processes, for ever."""
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
