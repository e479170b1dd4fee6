"""Serving through hypercorn. Whatever serves has this one shape: :func:`serve`."""

import logging
import math
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config, Sockets
from hypercorn.events import Closed, RawData
from hypercorn.protocol import h2, h11, ws_stream
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from hypercorn.trio import run as library
from hypercorn.trio.tcp_server import TCPServer
from wsproto.events import CloseConnection, Event, Ping

KEEP_ALIVE_S = 75
RECEIVE_MOST = 64 * 1024
HEADER_MOST = 32 * 1024
MESSAGE_MOST = 64 * 1024  # of a WebSocket, whatever its route allows
PING_S = 5.0  # a WebSocket that says nothing for so long is asked whether it lives
PINGS_MOST = 3  # and is dead, if it has not answered any of these
BYTES_A_SECOND = 16 * 1024  # of a WebSocket; who sends more is read more slowly
DRAIN_S = 7.0  # for requests in flight, of the supervisor's 9
CLOSE_AFTER_S = 0.05  # once accepting has stopped
_log = structlog.get_logger()


async def serve(app: Any, sockets: Sequence[socket.socket], stop: trio.Event, ready: Callable[[], None]) -> None:
    """Answer requests until ``stop`` is set; then take no more, finish those in flight, and return."""
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.graceful_timeout = DRAIN_S
    config.h11_max_incomplete_size = HEADER_MOST
    config.websocket_max_message_size = MESSAGE_MOST
    config.errorlog = logging.getLogger("hypercorn.error")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_close_when, stop, sockets)
        await nursery.start(
            partial(
                library.worker_serve,
                ASGIWrapper(_ending_well(app, stop)),
                config,
                sockets=Sockets([], list(sockets), []),
                shutdown_trigger=stop.wait,
            )
        )
        ready()


class Connection(TCPServer):
    """Hypercorn's, which kept a connection that its client had closed until it had been idle for KEEP_ALIVE_S, never
    missed a WebSocket client that had vanished, and took the whole worker down with one that broke the protocol (by
    sending frames before the handshake was done)."""

    _over = False

    async def run(self) -> None:
        try:
            await super().run()
        except* Exception:
            _log.warning("connection failed", exc_info=True)

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

    async def _send_wsproto_event(self, event: Event) -> None:
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


def _ending_well(app: Any, stop: trio.Event) -> Any:
    """The application, such that no connection is left open that nobody reads, nor closed without a word.

    Hypercorn says "disconnected" to the application while it still sends the end of the answer. Quart then cancels
    what it is doing, which is sending: a connection that should have been closed after its answer stayed open, and
    the next request on it got no answer until the drain was over. And after an answer to a request whose body was not
    awaited it closes the connection; a client that is not told sends its next request there.
    """

    async def run(scope: Any, receive: Any, send: Any) -> None:
        to_come = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope.get("headers", ()))

        async def receive_on() -> Any:
            nonlocal to_come
            message = await receive()
            to_come = to_come and bool(message.get("more_body", message["type"] != "http.request"))
            return message

        async def send_on(message: Any) -> None:
            match message["type"]:
                case "http.response.start" if (stop.is_set() or to_come) and scope["http_version"].startswith("1"):
                    await send(message | {"headers": [*message["headers"], (b"connection", b"close")]})
                case "http.response.body" if not message.get("more_body"):
                    with trio.CancelScope(shield=True):  # hypercorn itself does so for what waits on the client
                        await send(message)
                case _:
                    await send(message)

        await app(scope, receive_on, send_on)

    return run


async def _close_when(stop: trio.Event, sockets: Sequence[socket.socket]) -> None:
    """A socket that stays open would go on taking connections that nobody answers."""
    await stop.wait()
    await trio.sleep(CLOSE_AFTER_S)
    for listener in sockets:
        listener.close()
