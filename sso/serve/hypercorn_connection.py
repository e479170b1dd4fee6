"""A connection that hypercorn serves, with stricter parsing and limits.

Hypercorn gets the bytes of a client only after our own parser has accepted them: one request at a time, with a head
that is rendered again from the parsed one, and the body as the application asks for it.
"""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass

import h11
import structlog
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from wsproto.events import Ping
from wsproto.utilities import ProtocolError

from sso.log import current_request_id
from sso.serve import hypercorn_patches
from sso.serve.http1.body import request_body
from sso.serve.http1.head import RequestHead
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import CONTINUE
from sso.serve.hypercorn_request import RequestReader, render_head
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits
from sso.serve.websocket_limits import ReadRateLimit

MAX_READ = 64 * 1024
_CLIENT_ERRORS = (ProtocolError, h11.ProtocolError)
_WRITE_ERRORS = (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError, trio.TooSlowError)
_log = structlog.get_logger()

hypercorn_patches.install()


@dataclass(frozen=True)
class HypercornRules:
    """The limits and objects that all connections of a worker share."""

    limits: ServerLimits
    render_rejection: Callable[[RequestRejected], bytes]
    log: RateLimitedLog


class HypercornExchange:
    """The state of the current request."""

    def __init__(self) -> None:
        self.response_started = trio.Event()  # part of the response was written, or none ever will be
        self.finished = trio.Event()  # the next request may be passed on, unless the connection is closed
        self.body_requested = trio.Event()  # the application waits for more of the body
        self.reading_body = trio.CancelScope()  # cancelled when the application responds without reading the body
        self.has_unread_body = False


class HypercornConnection(TCPServer):
    """Corrects hypercorn's TCPServer, which otherwise

    - keeps a connection that its client has closed until the idle timeout,
    - waits without limit for a client that does not read,
    - does not report that a response was not written,
    - does not notice that a WebSocket client has vanished,
    - and ends the whole worker if a client violates the protocol.
    """

    write_s = ServerLimits.drain_s  # a shielded write must not outlast the drain
    lost = False
    written = 0  # bytes that were passed to the kernel
    _closed = False
    _discards_output = False  # a rejection replaces the response of the application

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        stream: trio.SocketStream,
        rules: HypercornRules,
    ) -> None:
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
        self._rules = rules
        self._reader = RequestReader(self._receive, rules.limits)
        self._exchange = HypercornExchange()
        self._exchange.finished.set()

    async def run(self) -> None:
        current_connection.set(self)
        current_request_id.set(None)  # an earlier request of the same connection may have set it
        try:
            await super().run()
        except* _CLIENT_ERRORS as group:
            self._rules.log(_log.debug, "http.protocol_violated", error=type(group.exceptions[0]).__name__)
        except* Exception:
            self._rules.log(_log.warning, "http.connection_failed", exc_info=True)

    # Output of hypercorn

    async def protocol_send(self, event: Event) -> None:
        match event:
            case RawData() if not self._discards_output:
                self._exchange.response_started.set()
                await self._write(event.data)
            case RawData():
                pass
            case Closed() if self._exchange.has_unread_body:
                self._end_exchange()  # `_pass_on_body` closes the stream
            case Closed():
                self._end_exchange()
                await super().protocol_send(event)
            case Updated():
                await super().protocol_send(event)
                if event.idle:
                    self._exchange.finished.set()

    def _end_exchange(self) -> None:
        self._closed = True
        for event in (self._exchange.response_started, self._exchange.finished, self._exchange.body_requested):
            event.set()
        self._exchange.reading_body.cancel()

    async def _write(self, data: bytes) -> None:
        async with self.send_lock:
            try:
                with trio.fail_after(self.write_s, shield=True):
                    await self.stream.send_all(data)
                    self.written += len(data)
            except _WRITE_ERRORS:
                self.lost = True
                self._end_exchange()
                await self.protocol.handle(Closed())
                await trio.aclose_forcefully(self.stream)  # the client may still be connected without reading

    # Input from the client

    async def _receive(self, max_bytes: int) -> bytes:
        """Returns b"" at the end of the stream."""
        try:
            return bytes(await self.stream.receive_some(max_bytes))
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            return b""

    async def _read_data(self) -> None:
        try:
            while await self._reader.wait_for_request():
                await self._exchange.finished.wait()
                if self._closed:
                    break
                await self.idle_task.stop()
                head = await self._reader.read_head()
                if head is None or not await self._serve(head):
                    break
        except RequestRejected as rejection:
            await self._reject(rejection)
        self._closed = True
        await self.protocol.handle(Closed())
        await self.idle_task.stop()

    async def _serve(self, head: RequestHead) -> bool:
        """Passes one request on to hypercorn. Returns whether another may follow."""
        exchange = self._exchange = HypercornExchange()
        exchange.has_unread_body = bool(head.length)
        await self.protocol.handle(RawData(render_head(head)))
        if head.websocket:
            # Frames are read only after a successful handshake: a refused client must not send any.
            await exchange.response_started.wait()
            if self._websocket and self._websocket.state is ASGIWebsocketState.CONNECTED:
                await self._read_frames()
            else:
                await exchange.finished.wait()
            return False
        return not head.length or await self._pass_on_body(head, exchange)

    async def _pass_on_body(self, head: RequestHead, exchange: HypercornExchange) -> bool:
        """Reads as much of the body as the application asks for. Returns whether another request may follow.

        Returns False if the client left, or the application responded without reading all of the body.
        """
        body = request_body(head.length, self._rules.limits)
        assert body is not None
        deadline = 0.0
        while not body.done:
            await exchange.body_requested.wait()
            if self._closed:
                await self._discard_input()
                return False
            if not deadline:
                deadline = trio.current_time() + self._rules.limits.body_s
                if head.expects_continue and not self._reader.has_buffered:
                    await self._write(CONTINUE)
            piece = b""
            with exchange.reading_body:
                piece = await self._reader.read_body_piece(body, deadline)
            if self._closed:  # the application responded while a piece arrived
                await self._discard_input()
                return False
            if not piece:
                return False
            exchange.reading_body = trio.CancelScope()
            exchange.body_requested = trio.Event()
            exchange.has_unread_body = not body.done
            await self.protocol.handle(RawData(piece))
        return True

    async def _reject(self, rejection: RequestRejected) -> None:
        self._rules.log(_log.debug, "http.request_rejected", status=rejection.status, reason=rejection.reason)
        self._discards_output = True
        if not self._closed and (self._exchange.finished.is_set() or not self._exchange.response_started.is_set()):
            await self._write(self._rules.render_rejection(rejection))
        await self.protocol.handle(Closed())
        await self._discard_input()

    async def _discard_input(self) -> None:
        """Reads until the client stops sending. If the socket were closed before, TCP could discard the response."""
        remaining = self._rules.limits.max_linger_bytes
        with trio.move_on_after(self._rules.limits.linger_s), suppress(OSError, trio.BrokenResourceError):
            await self.stream.send_eof()
            while remaining > 0 and (data := await self._receive(MAX_READ)):
                remaining -= len(data)

    def request_more_body(self) -> None:
        """Lets the connection read more of the body, because the application waits for it."""
        self._exchange.body_requested.set()

    @property
    def has_unread_body(self) -> bool:
        return self._exchange.has_unread_body

    async def _read_frames(self) -> None:
        rate_limit, ping_sent = ReadRateLimit(), False
        data = self._reader.take_buffered()
        while stream := self._websocket:
            if data:
                ping_sent = False
                await self.protocol.handle(RawData(data))
                await rate_limit.wait_after(len(data))
                data = b""
            limits = self._rules.limits
            with trio.move_on_after(limits.pong_s if ping_sent else limits.ping_s) as silence:
                data = await self._receive(MAX_READ)
            if not silence.cancelled_caught:
                if not data:
                    return
                continue
            if ping_sent:
                await self.stream.aclose()  # first: a task may be waiting until the client reads
                return
            ping_sent = True
            self._task_group.spawn(stream._send_wsproto_event, Ping())

    @property
    def _websocket(self) -> WSStream | None:
        stream = getattr(self.protocol.protocol, "stream", None)
        return stream if isinstance(stream, WSStream) else None

    async def _idle_timeout(self) -> None:
        if not self._closed:
            await super()._idle_timeout()


current_connection: ContextVar[HypercornConnection] = ContextVar("connection")  # of a task and of those it starts
