"""Serving through hypercorn. Whatever serves has this one shape: :func:`serve`."""

import logging
import math
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config, Sockets
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import h2, h11, ws_stream
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from hypercorn.trio import run as library
from hypercorn.trio.tcp_server import TCPServer
from wsproto.events import CloseConnection, Ping
from wsproto.events import Event as Frame

from sso.serve.lane.watch import has_left
from sso.serve.limits import Limits
from sso.web.wire import KEY

RECEIVE_MOST = 64 * 1024
MESSAGE_MOST = 64 * 1024  # of a WebSocket, whatever its route allows
PING_S = 5.0  # a WebSocket that says nothing for so long is asked whether it lives
PINGS_MOST = 3  # and is dead, if it has not answered any of these
BYTES_A_SECOND = 16 * 1024  # of a WebSocket; who sends more is read more slowly
CLOSE_AFTER_S = 0.05  # once accepting has stopped
_log = structlog.get_logger()


async def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    limits: Limits | None = None,
) -> None:
    """Answer requests until ``stop`` is set; then take no more, finish those in flight, and return."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_close_when, stop, sockets)
        await nursery.start(
            partial(
                library.worker_serve,
                ASGIWrapper(ending_well(app, stop)),
                configuration(limits or Limits()),
                sockets=Sockets([], list(sockets), []),
                shutdown_trigger=stop.wait,
            )
        )
        ready()


def configuration(limits: Limits) -> Config:
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = limits.keep_alive_s
    config.graceful_timeout = limits.drain_s
    config.h11_max_incomplete_size = limits.head_most
    config.websocket_max_message_size = MESSAGE_MOST
    config.errorlog = logging.getLogger("hypercorn.error")
    return config


class Connection(TCPServer):
    """Hypercorn's, which kept a connection that its client had closed until it had been idle for its time, waited for
    ever for a client that does not read, told nobody that an answer was not written, never missed a WebSocket client
    that had vanished, and took the whole worker down with one that broke the protocol (by sending frames before the
    handshake was done)."""

    write_s = Limits.drain_s  # it is shielded, and must not outlast the drain
    lost = False
    _over = False

    async def run(self) -> None:
        _connection.set(self)
        try:
            await super().run()
        except* Exception:
            _log.warning("connection failed", exc_info=True)

    async def protocol_send(self, event: Event) -> None:
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                with trio.fail_after(self.write_s, shield=True):
                    await self.stream.send_all(event.data)
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError, trio.TooSlowError):
                self.lost = True
                await self.protocol.handle(Closed())

    async def _read_data(self) -> None:
        pace, pings = Pace(), 0
        while not self._over:
            with trio.move_on_after(PING_S if self._websocket else math.inf) as silence:
                try:
                    data = bytes(await self.stream.receive_some(RECEIVE_MOST))
                except (trio.ClosedResourceError, trio.BrokenResourceError):
                    break
            if silence.cancelled_caught and self._websocket:
                if pings == PINGS_MOST:
                    await self.stream.aclose()  # first: somebody may be waiting for it to take what it does not read
                    break
                pings += 1
                self._task_group.spawn(self._websocket._send_wsproto_event, Ping())
                continue
            self._over, pings = data == b"", 0
            await self.protocol.handle(RawData(data))
            if self._websocket:
                await pace.keep(len(data))
        self._over = True
        await self.protocol.handle(Closed())
        await self.idle_task.stop()

    @property
    def _websocket(self) -> WSStream | None:
        stream = getattr(self.protocol.protocol, "stream", None)
        return stream if isinstance(stream, WSStream) else None

    async def _idle_timeout(self) -> None:
        if not self._over:
            await super()._idle_timeout()


class Socket(WSStream):
    """Hypercorn's, which closed a WebSocket with too large a message over the head of the application."""

    async def _send_wsproto_event(self, event: Frame) -> None:
        too_large = self.state is ASGIWebsocketState.CONNECTED and self.buffer.length > MESSAGE_MOST
        if isinstance(event, CloseConnection) and too_large and self.app_put:
            await self.app_put(self.buffer.to_message())  # as much as has come: it will not be liked
            self.buffer.clear()
        else:
            await super()._send_wsproto_event(event)


class Pace:
    """A client that sends a flood of tiny frames is read no faster than this, and so costs no more."""

    def __init__(self) -> None:
        self._since = trio.current_time()
        self._bytes = 0

    async def keep(self, count: int) -> None:
        now = trio.current_time()
        if now - self._since > 1:
            self._since, self._bytes = now, 0
        self._bytes += count
        if self._bytes > BYTES_A_SECOND:
            await trio.sleep_until(self._since + self._bytes / BYTES_A_SECOND)


library.TCPServer = Connection  # type: ignore[attr-defined]  # there is no other way to give it one
h11.WSStream = h2.WSStream = Socket  # type: ignore[attr-defined]
# Compressed frames are not taken: a small one can become a huge one.
ws_stream.server_extensions_handshake = lambda *_: None  # type: ignore[attr-defined]
_connection: ContextVar[Connection] = ContextVar("connection")  # of the task and those it starts


class Wire:
    """What a handler knows of its client (`sso.web.wire`)."""

    def __init__(self, connection: Connection) -> None:
        self.undo: Callable[[], Awaitable[None]] | None = None
        self.gone = False
        self._connection = connection
        self._left: int | None = None
        self._written = False

    def watched(self) -> AbstractContextManager[None]:
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
        if self.undo is not None and not self._written:
            with trio.move_on_after(undo_s, shield=True):
                try:
                    await self.undo()
                except Exception:
                    _log.exception("an answer that was not written could not be undone")


def ending_well(app: Any, stop: trio.Event) -> Any:
    """The application, such that no connection is left open that nobody reads, nor closed without a word.

    Hypercorn says "disconnected" to the application while it still sends the end of the answer. Quart then cancels
    what it is doing, which is sending: a connection that should have been closed after its answer stayed open, and
    the next request on it got no answer until the drain was over. And after an answer to a request whose body was not
    awaited it closes the connection; a client that is not told sends its next request there.
    """

    async def run(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        wire = Wire(_connection.get())
        scope["extensions"][KEY] = wire
        to_come = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope.get("headers", ()))

        async def receive_on() -> Any:
            nonlocal to_come
            message = await receive()
            to_come = to_come and bool(message.get("more_body", message["type"] != "http.request"))
            return message

        async def send_on(message: Any) -> None:
            match message["type"]:
                case _ if wire.gone:
                    pass  # nobody would get it
                case "http.response.start" if wire.undo is not None and wire.has_left():
                    wire.gone = True
                case "http.response.start":
                    wire.announced(message["headers"])
                    if (stop.is_set() or to_come) and scope["http_version"].startswith("1"):
                        message = message | {"headers": [*message["headers"], (b"connection", b"close")]}
                    await send(message)
                case "http.response.body":
                    last = not message.get("more_body")
                    # Hypercorn itself does so for what waits on the client. With HTTP/2 that may be for ever.
                    with trio.CancelScope(shield=last and scope["http_version"].startswith("1")):
                        await send(message)
                    wire.sent(len(message.get("body", b"")), last)
                case _:
                    await send(message)

        try:
            await app(scope, receive_on, send_on)
        finally:
            await wire.end(Limits.undo_s)

    return run


async def _close_when(stop: trio.Event, sockets: Sequence[socket.socket]) -> None:
    """A socket that stays open would go on taking connections that nobody answers."""
    await stop.wait()
    await trio.sleep(CLOSE_AFTER_S)
    for listener in sockets:
        listener.close()
