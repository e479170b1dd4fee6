"""A connection of hypercorn's, with what was missing. Imported for its effect too: hypercorn then uses these.

The bytes of a client reach hypercorn only after our own head reader has accepted them: one request at a time, its head
rebuilt from what was understood, and its body as the application asks for it.
"""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass

import h11 as h11_library
import structlog
import trio
from hypercorn import protocol
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import h11, ws_stream
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from wsproto.events import Ping
from wsproto.utilities import ProtocolError

from sso.log import current_request_id
from sso.serve.http1.body import request_body
from sso.serve.http1.head import RequestHead
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import CONTINUE
from sso.serve.hypercorn_request import RequestReader, request_head
from sso.serve.hypercorn_websocket import HypercornWebSocket
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits

MAX_RECEIVE = 64 * 1024
MAX_MESSAGE = 64 * 1024  # of a WebSocket, whatever its route allows
PING_S = 5.0  # a WebSocket that says nothing for so long is asked whether it lives
MAX_PINGS = 3  # and is dead, if it has not answered any of these
BYTES_A_SECOND = 16 * 1024  # of a WebSocket; who sends more is read more slowly
_CLIENT_ERRORS = (ProtocolError, h11_library.ProtocolError)
_log = structlog.get_logger()


@dataclass(frozen=True)
class HypercornRules:
    """What all connections of a worker share."""

    limits: ServerLimits
    refusal: Callable[[RequestRejected], bytes]
    log: RateLimitedLog


class HypercornExchange:
    """The state of the request that is being served."""

    def __init__(self) -> None:
        self.begun = trio.Event()  # part of the answer was written, or never will be
        self.over = trio.Event()  # the next request may be handed on, unless the connection is closed
        self.wanted = trio.Event()  # the application waits for more of the body
        self.reading = trio.CancelScope()  # cancelled when the application has answered without it
        self.has_unread_body = False


class HypercornConnection(TCPServer):
    """Hypercorn's, which kept a connection that its client had closed until it had been idle for its time, waited for
    ever for a client that does not read, told nobody that an answer was not written, never missed a WebSocket client
    that had vanished, and took the whole worker down with one that broke the protocol."""

    write_s = ServerLimits.drain_s  # it is shielded, and must not outlast the drain
    lost = False
    _closed = False
    _muted = False  # the answer is not the application's any more

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        stream: trio.SocketStream,
        rules: HypercornRules,
        read: bytes = b"",
    ) -> None:
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
        self._rules = rules
        self._reader = RequestReader(self._receive, rules.limits, read)
        self._exchange = HypercornExchange()
        self._exchange.over.set()

    async def run(self) -> None:
        present.set(self)
        current_request_id.set(None)  # of an earlier request on the same connection
        try:
            await super().run()
        except* _CLIENT_ERRORS as group:
            self._rules.log(_log.debug, "http.protocol_error", error=type(group.exceptions[0]).__name__)
        except* Exception:
            self._rules.log(_log.warning, "http.connection_failed", exc_info=True)

    async def protocol_send(self, event: Event) -> None:
        match event:
            case RawData() if not self._muted:
                self._exchange.begun.set()
                await self._write(event.data)
            case RawData():
                pass
            case Closed() if self._exchange.has_unread_body:
                self._end_exchange()  # whoever reads closes the stream
            case Closed():
                self._end_exchange()
                await super().protocol_send(event)
            case Updated():
                await super().protocol_send(event)
                if event.idle:
                    self._exchange.over.set()

    def _end_exchange(self) -> None:
        self._closed = True
        for event in (self._exchange.begun, self._exchange.over, self._exchange.wanted):
            event.set()
        self._exchange.reading.cancel()

    async def _write(self, data: bytes) -> None:
        async with self.send_lock:
            try:
                with trio.fail_after(self.write_s, shield=True):
                    await self.stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError, trio.TooSlowError):
                self.lost = True
                self._end_exchange()
                await self.protocol.handle(Closed())
                await trio.aclose_forcefully(self.stream)  # the client may still be there, and say nothing

    async def _receive(self, most: int) -> bytes:
        """Returns nothing at the end of the stream."""
        try:
            return bytes(await self.stream.receive_some(most))
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            return b""

    async def _read_data(self) -> None:
        try:
            while await self._reader.begins():
                await self._exchange.over.wait()
                if self._closed:
                    break
                await self.idle_task.stop()
                head = await self._reader.head()
                if head is None or not await self._serve(head):
                    break
        except RequestRejected as refused:
            await self._refuse(refused)
        self._closed = True
        await self.protocol.handle(Closed())
        await self.idle_task.stop()

    async def _serve(self, head: RequestHead) -> bool:
        """Hands on one request. Returns whether another may follow."""
        exchange = self._exchange = HypercornExchange()
        exchange.has_unread_body = bool(head.length)
        await self.protocol.handle(RawData(request_head(head)))
        if head.websocket:
            # Frames are not read before the handshake is done: a refused client must not send any.
            await exchange.begun.wait()
            if self._websocket and self._websocket.state is ASGIWebsocketState.CONNECTED:
                await self._read_frames()
            else:
                await exchange.over.wait()
            return False
        return not head.length or await self._hand_on_body(head, exchange)

    async def _hand_on_body(self, head: RequestHead, exchange: HypercornExchange) -> bool:
        """Reads as much of the body as the application asks for. Returns False if the client left, or the
        application has answered without all of it."""
        body = request_body(head.length, self._rules.limits)
        assert body is not None
        due = 0.0
        while not body.done:
            await exchange.wanted.wait()
            if self._closed:
                await self._linger()
                return False
            if not due:
                due = trio.current_time() + self._rules.limits.body_s
                if head.expects_continue and not self._reader.has_rest:
                    await self._write(CONTINUE)
            piece = b""
            with exchange.reading:
                piece = await self._reader.body_piece(body, due)
            if exchange.reading.cancelled_caught:
                await self._linger()
            if not piece:
                return False
            exchange.reading = trio.CancelScope()
            exchange.wanted = trio.Event()
            exchange.has_unread_body = not body.done
            await self.protocol.handle(RawData(piece))
        return True

    async def _refuse(self, refused: RequestRejected) -> None:
        self._rules.log(_log.debug, "http.request_refused", status=refused.status, reason=refused.reason)
        self._muted = True
        if not self._closed and (self._exchange.over.is_set() or not self._exchange.begun.is_set()):
            await self._write(self._rules.refusal(refused))
        await self.protocol.handle(Closed())
        await self._linger()

    async def _linger(self) -> None:
        """A socket that is closed while its client still sends loses the answer on the way."""
        left = self._rules.limits.max_linger_bytes
        with trio.move_on_after(self._rules.limits.linger_s), suppress(OSError, trio.BrokenResourceError):
            await self.stream.send_eof()
            while left > 0 and (data := await self._receive(MAX_RECEIVE)):
                left -= len(data)

    def want_body(self) -> None:
        """The application waits for more of the body."""
        self._exchange.wanted.set()

    @property
    def has_unread_body(self) -> bool:
        return self._exchange.has_unread_body

    async def _read_frames(self) -> None:
        pace, pings = ReadPacing(), 0
        data = self._reader.take_rest()
        while stream := self._websocket:
            if data:
                pings = 0
                await self.protocol.handle(RawData(data))
                await pace.keep(len(data))
                data = b""
            with trio.move_on_after(PING_S) as silence:
                data = await self._receive(MAX_RECEIVE)
            if not silence.cancelled_caught:
                if not data:
                    return
                continue
            if pings == MAX_PINGS:
                await self.stream.aclose()  # first: somebody may be waiting for it to take what it does not read
                return
            pings += 1
            self._task_group.spawn(stream._send_wsproto_event, Ping())

    @property
    def _websocket(self) -> WSStream | None:
        stream = getattr(self.protocol.protocol, "stream", None)
        return stream if isinstance(stream, WSStream) else None

    async def _idle_timeout(self) -> None:
        if not self._closed:
            await super()._idle_timeout()


class Http1Only(h11.H11Protocol):
    """Hypercorn's, which switched to HTTP/2 for an upgrade to h2c and for its preface."""

    async def _check_protocol(self, event: h11_library.Request) -> None:
        pass


class ReadPacing:
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


protocol.H11Protocol = Http1Only  # type: ignore[attr-defined]  # there is no other way to give it one
h11.WSStream = HypercornWebSocket  # type: ignore[attr-defined]
# Compressed frames are not taken: a small one can become a huge one.
ws_stream.server_extensions_handshake = lambda *_: None  # type: ignore[attr-defined]
present: ContextVar[HypercornConnection] = ContextVar("connection")  # of the task and those it starts
