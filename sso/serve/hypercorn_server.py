"""Serves the application with hypercorn (SSO_HTTP=hypercorn), for use behind a proxy.

Hypercorn parses and limits requests by its own rules. Only this is added to it: HTTP/2 without TLS is refused, a client
that violates the protocol ends its own connection only, and handlers learn whether their response was written.
"""

import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from sso.log import current_request_id
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits
from sso.telemetry.spans import Span, current_span
from sso.web.client_connection import CONNECTION_EXTENSION
from sso.web.websocket import MAX_MESSAGE_BYTES

_log = structlog.get_logger()


async def serve_with_hypercorn(
    app: Any, sockets: Sequence[socket.socket], stop: trio.Event, ready: Callable[[], None], limits: ServerLimits
) -> None:
    """Serves until ``stop`` is set; then finishes the requests in flight, and returns."""
    config = hypercorn_config(limits)
    wrapped, context = ASGIWrapper(_wrap(app)), WorkerContext(None)
    lifespan = Lifespan(wrapped, config, {})
    serve_connection = partial(_serve_connection, wrapped, config, context, RateLimitedLog())
    listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in sockets]
    async with trio.open_nursery() as background:
        await background.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        async with trio.open_nursery() as connections, trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(trio.serve_listeners, handler_nursery=connections), serve_connection, listeners
            )
            ready()
            await stop.wait()
            accepting.cancel_scope.cancel()
            connections.cancel_scope.deadline = trio.current_time() + limits.drain_s
            await context.terminated.set()
        await lifespan.wait_for_shutdown()
        background.cancel_scope.cancel()


def hypercorn_config(limits: ServerLimits) -> Config:
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = limits.keep_alive_s
    config.graceful_timeout = limits.drain_s
    config.h11_max_incomplete_size = limits.max_head_bytes
    config.websocket_max_message_size = MAX_MESSAGE_BYTES
    config.websocket_ping_interval = limits.ping_s
    config.errorlog = logging.getLogger("hypercorn.error")
    return config


async def _serve_connection(
    app: ASGIWrapper, config: Config, context: WorkerContext, log: RateLimitedLog, stream: trio.SocketStream
) -> None:
    current_request_id.set(None)
    try:
        await TCPServer(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
    except* Exception as group:  # for example a malformed frame: it must not end the worker
        log(_log.debug, "http.protocol_violated", error=type(group.exceptions[0]).__name__)


def _wrap(app: Any) -> Any:
    async def run(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("http_version") == "2":  # a proxy cannot check the requests in such a tunnel
            await _refuse(scope["type"], send)
        elif scope["type"] == "http":
            await _serve_request(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return run


async def _refuse(scope_type: str, send: Any) -> None:
    if scope_type == "websocket":
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 505, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _serve_request(app: Any, scope: Any, receive: Any, send: Any) -> None:
    client = HypercornClientConnection()
    scope["extensions"][CONNECTION_EXTENSION] = client

    async def send_response(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] == 413:
            # The rest of the body is not read, and hypercorn closes the connection: the client must not use it again.
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        last = message["type"] == "http.response.body" and not message.get("more_body")
        with trio.CancelScope(shield=last):  # hypercorn cancels the handler while it writes the end of the response
            await send(message)
        client.delivered = client.delivered or last

    try:
        await app(scope, receive, send_response)
    finally:
        await client.finish()


class HypercornClientConnection:
    """Implements ``ClientConnection`` of sso.web.client_connection for one request."""

    def __init__(self) -> None:
        self.delivered = False  # the last byte of the response was passed to hypercorn
        self._on_response_end: Callable[[bool], Awaitable[None]] | None = None
        self._request_id: str | None = None
        self._span: Span | None = None

    @property
    def on_response_end(self) -> Callable[[bool], Awaitable[None]] | None:
        return self._on_response_end

    @on_response_end.setter
    def on_response_end(self, callback: Callable[[bool], Awaitable[None]] | None) -> None:
        """Also keeps the request for the log: Quart's task ends before the callback is called."""
        self._on_response_end = callback
        self._request_id, self._span = current_request_id.get(), current_span.get()

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return nullcontext()  # hypercorn reports a disconnect to Quart, which cancels the handler

    async def finish(self) -> None:
        if self._on_response_end is None:
            return
        current_request_id.set(self._request_id)
        current_span.set(self._span)
        with trio.move_on_after(ServerLimits().on_response_end_s, shield=True):
            try:
                await self._on_response_end(self.delivered)
            except Exception:
                _log.exception("http.on_response_end_failed")
