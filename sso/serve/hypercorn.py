"""Serving through hypercorn: it answers all requests; accepting connections and reading heads stay the same."""

import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import trio

from sso.serve.http1 import server
from sso.serve.http1.balance import WorkerSlot
from sso.serve.server_limits import ServerLimits


async def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    limits: ServerLimits | None = None,
    headers: Iterable[tuple[str, str]] = (),
    place: WorkerSlot | None = None,
) -> None:
    """Same contract as the built-in server's ``serve``."""
    await server.serve(app, sockets, stop, ready, limits, headers, place, hypercorn_only=True)
