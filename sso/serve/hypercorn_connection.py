"""A connection of hypercorn's, with what was missing. Imported for its effect too: hypercorn then uses these."""

import math
from contextvars import ContextVar

import structlog
import trio
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import h2, h11, ws_stream
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.trio import run as library
from hypercorn.trio.tcp_server import TCPServer
from wsproto.events import Ping

from sso.serve.limits import Limits
from sso.serve.websocket import Socket

RECEIVE_MOST = 64 * 1024
MESSAGE_MOST = 64 * 1024  # of a WebSocket, whatever its route allows
PING_S = 5.0  # a WebSocket that says nothing for so long is asked whether it lives
PINGS_MOST = 3  # and is dead, if it has not answered any of these
BYTES_A_SECOND = 16 * 1024  # of a WebSocket; who sends more is read more slowly
_log = structlog.get_logger()


class Connection(TCPServer):
    """Hypercorn's, which kept a connection that its client had closed until it had been idle for its time, waited for
    ever for a client that does not read, told nobody that an answer was not written, never missed a WebSocket client
    that had vanished, and took the whole worker down with one that broke the protocol (by sending frames before the
    handshake was done)."""

    write_s = Limits.drain_s  # it is shielded, and must not outlast the drain
    lost = False
    _over = False

    async def run(self) -> None:
        present.set(self)
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
present: ContextVar[Connection] = ContextVar("connection")  # of the task and those it starts
