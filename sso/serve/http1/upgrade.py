"""Connections that hypercorn serves: WebSockets, with what was read so far, or all of them."""

import socket
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.worker_context import WorkerContext

from sso.serve.hypercorn_app import hypercorn_config, wrap_app
from sso.serve.hypercorn_connection import HypercornConnection, HypercornRules


class HypercornUpgrade:
    def __init__(self, app: Any, stop: trio.Event, rules: HypercornRules) -> None:
        self._app = ASGIWrapper(wrap_app(app, stop))
        self._config = hypercorn_config(rules.limits)
        self._context = WorkerContext(None)
        self._rules = rules

    async def take(self, sock: socket.socket, read: bytes = b"") -> None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        await HypercornConnection(self._app, self._config, self._context, stream, self._rules, read)

    async def drain(self) -> None:
        """Those that do nothing are closed, the others when they have done."""
        await self._context.terminated.set()
