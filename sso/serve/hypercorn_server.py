"""Serves every connection with hypercorn (SSO_HTTP=hypercorn)."""

import socket
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.worker_context import WorkerContext

from sso.serve.hypercorn_app import hypercorn_config, wrap_app
from sso.serve.hypercorn_connection import HypercornConnection, HypercornRules


class HypercornServer:
    def __init__(self, app: Any, stop: trio.Event, rules: HypercornRules) -> None:
        self._app = ASGIWrapper(wrap_app(app, stop))
        self._config = hypercorn_config(rules.limits)
        self._context = WorkerContext(None)
        self._rules = rules

    async def serve_connection(self, sock: socket.socket) -> None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        await HypercornConnection(self._app, self._config, self._context, stream, self._rules).run()

    async def drain(self) -> None:
        """Closes idle connections now, and the others after their current request."""
        await self._context.terminated.set()
