"""How hypercorn is configured, and what stands between it and the application."""

import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import structlog
import trio
from hypercorn.config import Config

from sso.serve.http1.disconnects import has_left
from sso.serve.hypercorn_connection import MAX_MESSAGE, HypercornConnection, present
from sso.serve.server_limits import ServerLimits
from sso.web.client_connection import CONNECTION_EXTENSION

CLOSE = (b"connection", b"close")
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
    """What a handler knows of its client (`sso.web.client_connection`)."""

    def __init__(self, connection: HypercornConnection) -> None:
        self.on_undelivered: Callable[[], Awaitable[None]] | None = None
        self.gone = False
        self._connection = connection
        self._left: int | None = None
        self._written = False

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return nullcontext()  # Quart hears of a client that left, and cancels its handler

    def has_left(self) -> bool:
        sock: socket.socket = self._connection.stream.socket
        return self._connection.lost or sock.fileno() < 0 or has_left(sock)

    def announced(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._left = next((int(value) for name, value in headers if name == b"content-length"), None)

    def sent(self, size: int, last: bool) -> None:
        """Handed to the system. A client that has all it waits for may leave before it is told that this was all."""
        if self._left is not None:
            self._left -= size
        self._written = self._written or ((last or self._left == 0) and not self._connection.lost)

    async def end(self, undo_s: float) -> None:
        if self.on_undelivered is not None and not self._written:
            with trio.move_on_after(undo_s, shield=True):
                try:
                    await self.on_undelivered()
                except Exception:
                    _log.exception("an answer that was not written could not be undone")


def wrap_app(app: Any, stop: trio.Event) -> Any:
    """The application, such that no connection is left open that nobody reads, nor closed without a word.

    Hypercorn says "disconnected" to the application while it still sends the end of the answer. Quart then cancels
    what it is doing, which is sending: a connection that should have been closed after its answer stayed open, and
    the next request on it got no answer until the drain was over. And after an answer to a request whose body was not
    awaited, or to a handshake that was refused, it closes the connection; a client that is not told sends its next
    request there.
    """

    async def run(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await app(scope, receive, partial(_send_refusals_as_last, send))
            return
        connection = present.get()
        wire = HypercornClientConnection(connection)
        scope["extensions"][CONNECTION_EXTENSION] = wire

        async def receive_on() -> Any:
            connection.want_body()
            return await receive()

        async def send_on(message: Any) -> None:
            match message["type"]:
                case _ if wire.gone:
                    pass  # nobody would get it
                case "http.response.start" if wire.on_undelivered is not None and wire.has_left():
                    wire.gone = True
                case "http.response.start":
                    wire.announced(message["headers"])
                    if stop.is_set() or connection.has_unread_body:
                        message = message | {"headers": [*message["headers"], CLOSE]}
                    await send(message)
                case "http.response.body":
                    last = not message.get("more_body")
                    with trio.CancelScope(shield=last):  # hypercorn itself does so for what waits on the client
                        await send(message)
                    wire.sent(len(message.get("body", b"")), last)
                case _:
                    await send(message)

        try:
            await app(scope, receive_on, send_on)
        finally:
            await wire.end(ServerLimits.undo_s)

    return run


async def _send_refusals_as_last(send: Any, message: Any) -> None:
    if message["type"] == "websocket.http.response.start":
        message = message | {"headers": [*message["headers"], CLOSE]}
    await send(message)
