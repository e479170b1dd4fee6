"""The configuration of hypercorn, and the ASGI wrapper between hypercorn and the application."""

import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import structlog
import trio
from hypercorn.config import Config

from sso.core.telemetry import Span, current_span
from sso.log import current_request_id
from sso.serve.acknowledgement import ResponseBytes
from sso.serve.http1.disconnects import has_disconnected
from sso.serve.hypercorn_connection import HypercornConnection, current_connection
from sso.serve.server_limits import ServerLimits
from sso.web.client_connection import CONNECTION_EXTENSION

CLOSE = (b"connection", b"close")
MAX_MESSAGE = 64 * 1024  # of a WebSocket; HypercornWebSocket has a lower limit
_log = structlog.get_logger()


def hypercorn_config(limits: ServerLimits) -> Config:
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = limits.keep_alive_s
    config.graceful_timeout = limits.drain_s
    config.h11_max_incomplete_size = limits.max_head_bytes
    config.websocket_max_message_size = MAX_MESSAGE
    config.errorlog = logging.getLogger("hypercorn.error")
    return config


class HypercornClientConnection:
    """Implements ``ClientConnection`` of sso.web.client_connection for one request."""

    def __init__(self, connection: HypercornConnection) -> None:
        self.has_left = False
        self._on_response_end: Callable[[bool], Awaitable[None]] | None = None
        self._request_id: str | None = None
        self._span: Span | None = None
        self._connection = connection
        self._remaining: int | None = None  # bytes of the announced content length that were not written yet
        self._delivered = False
        self._bytes: ResponseBytes | None = None  # of a response whose end is reported
        self._written_before = 0  # bytes, on this connection

    @property
    def on_response_end(self) -> Callable[[bool], Awaitable[None]] | None:
        return self._on_response_end

    @on_response_end.setter
    def on_response_end(self, callback: Callable[[bool], Awaitable[None]] | None) -> None:
        """Also keeps the request for the log: Quart's task ends before the callback is called."""
        self._on_response_end = callback
        self._bytes, self._written_before = ResponseBytes(self._connection.stream.socket), self._connection.written
        self._request_id, self._span = current_request_id.get(), current_span.get()

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return nullcontext()  # hypercorn reports a disconnect to Quart, which cancels the handler

    def check_disconnected(self) -> bool:
        sock: socket.socket = self._connection.stream.socket
        return self._connection.lost or sock.fileno() < 0 or has_disconnected(sock)

    def response_started(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._remaining = next((int(value) for name, value in headers if name == b"content-length"), None)

    def body_sent(self, size: int, last: bool) -> None:
        """Records bytes that were passed to the kernel.

        The response counts as delivered when its content length is reached, because the client may disconnect before
        the last message of the application.
        """
        if self._remaining is not None:
            self._remaining -= size
        complete = last or self._remaining == 0
        self._delivered = self._delivered or (complete and not self._connection.lost)

    async def finish(self) -> None:
        if self._on_response_end is not None:
            current_request_id.set(self._request_id)
            current_span.set(self._span)
            with trio.CancelScope(shield=True):
                delivered = self._delivered and await self._are_bytes_acknowledged()
            with trio.move_on_after(ServerLimits.on_response_end_s, shield=True):
                try:
                    await self._on_response_end(delivered)
                except Exception:
                    _log.exception("http.on_response_end_failed")

    async def _are_bytes_acknowledged(self) -> bool:
        assert self._bytes is not None
        self._bytes.add(self._connection.written - self._written_before)
        return await self._bytes.are_acknowledged(may_read=False)


def wrap_app(app: Any, stop: trio.Event) -> Any:
    """Returns the application with corrections for how hypercorn ends requests and connections.

    - Hypercorn sends "disconnected" to the application while it still writes the end of the response. Quart then
      cancels its task, which is the one that writes, and a connection that should close stays open: its next request
      would get no response until the drain ends. The last message is therefore sent in a shielded scope.
    - Hypercorn closes the connection after a response to a request whose body was not read, and after a refused
      handshake. Without "connection: close" the client would send its next request there.
    """

    async def run(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await app(scope, receive, partial(_send_refusal_with_close, send))
            return
        connection = current_connection.get()
        client = HypercornClientConnection(connection)
        scope["extensions"][CONNECTION_EXTENSION] = client

        async def receive_body() -> Any:
            connection.request_more_body()
            return await receive()

        async def send_response(message: Any) -> None:
            match message["type"]:
                case _ if client.has_left:
                    pass
                case "http.response.start" if client.on_response_end is not None and client.check_disconnected():
                    client.has_left = True
                case "http.response.start":
                    client.response_started(message["headers"])
                    if stop.is_set() or connection.has_unread_body:
                        message = message | {"headers": [*message["headers"], CLOSE]}
                    await send(message)
                case "http.response.body":
                    last = not message.get("more_body")
                    with trio.CancelScope(shield=last):  # hypercorn shields its own waiting for the client as well
                        await send(message)
                    client.body_sent(len(message.get("body", b"")), last)
                case _:
                    await send(message)

        try:
            await app(scope, receive_body, send_response)
        finally:
            await client.finish()

    return run


async def _send_refusal_with_close(send: Any, message: Any) -> None:
    if message["type"] == "websocket.http.response.start":
        message = message | {"headers": [*message["headers"], CLOSE]}
    await send(message)
