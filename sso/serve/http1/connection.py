"""One connection: serves its requests one after the other, and a WebSocket as the last one, in one task.

This file has more than 300 lines because the state of a connection is one object, of which there are thousands.
"""

import socket
from collections.abc import Awaitable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum
from typing import NoReturn

import structlog
import trio
from trio import current_time
from trio.lowlevel import checkpoint, wait_readable, wait_writable

from sso.log import current_request_id
from sso.serve.http1.connection_interface import SilenceObserver
from sso.serve.http1.disconnects import is_readable
from sso.serve.http1.exchange import HttpExchange
from sso.serve.http1.head import head_end, read_head
from sso.serve.http1.rejections import RequestRejected, overloaded, simple_body_length
from sso.serve.http1.server_context import ServerContext
from sso.serve.http1.websocket import WebSocketExchange
from sso.telemetry.spans import current_span

Address = tuple[str, int]
NEVER = float("inf")
MAX_READ = 64 * 1024
MAX_HEAD_READ = 16 * 1024
_log = structlog.get_logger()


class ConnectionState(Enum):
    """The event that the connection waits for. It decides what an expired deadline does."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    RESPONSE = "response"
    WEBSOCKET = "websocket"


class Connection:
    """An expired deadline, a rejection, a disconnect and the end of the drain all cancel its scope."""

    __slots__ = (
        "_began", "_head_bytes", "_is_new", "_rejection", "_scope", "_state", "_websocket",
        "buffer", "client", "context", "deadline", "has_unread_body", "local_address", "response_started", "sock",
    )  # fmt: skip

    def __init__(
        self, context: ServerContext, sock: socket.socket, client: Address | None, local_address: Address | None
    ) -> None:
        self.context = context
        self.sock = sock
        self.client = client
        self.local_address = local_address
        self.buffer = b""  # received and not consumed yet
        self.deadline = NEVER
        self.response_started = False  # part of the current response may have been written
        self.has_unread_body = False  # the client may still be sending a body that no handler reads
        self._began = 0.0  # when the current request came, unless it is held
        self._head_bytes = b""  # the complete head of the next request
        self._scope = trio.CancelScope()
        self._state = ConnectionState.IDLE
        self._is_new = True  # no request has been received
        self._rejection: RequestRejected | None = None
        self._websocket: SilenceObserver | None = None

    async def run(self) -> None:
        context = self.context
        context.connections.add(self)
        try:
            with self._scope:
                await self._serve()
            self.deadline = NEVER
            if self._rejection or self.has_unread_body:
                await self._close_gracefully()
        except Exception:
            context.log(_log.exception, "http.connection_failed")
        finally:
            if (span := current_span.get()) is not None:
                span.abandoned()  # has no effect if the request was answered
            context.connections.discard(self)
            context.limiter.release(self.client)
            self.sock.close()

    async def _serve(self) -> None:
        """Serves requests until the connection ends."""
        pacing, admission = self.context.pacing, self.context.admission
        try:
            while await self._receive_head():
                self._state, self.deadline = ConnectionState.RESPONSE, NEVER
                if admission.refuses(self._head_bytes):
                    await self._refuse()
                    continue
                self._began = admission.start()
                if not pacing.try_start():
                    await pacing.wait_for_start()
                if not await self._serve_request():
                    break
                self._began = admission.finish(self._began)
        except RequestRejected as rejection:
            self._rejection = rejection
        finally:
            admission.finish(self._began)

    async def _refuse(self) -> None:
        """Keeps the connection if that is cheap, because a new one costs more than the refusal."""
        rejection = overloaded()
        length = simple_body_length(self._head_bytes)
        if length is None or length > len(self.buffer):
            raise rejection
        self.buffer = self.buffer[length:]
        self._is_new = False
        await self.write(self.context.render_rejection(rejection, closes=False))
        self._state = ConnectionState.IDLE
        await self.context.refusal_pause.wait()
        if not self.buffer:
            self.buffer = self._read_available()

    def hold(self) -> None:
        """The request waits for an event: it is no work that others wait for."""
        self._began = self.context.admission.hold(self._began)

    @contextmanager
    def _waiting_for_client(self) -> Iterator[None]:
        """Inside this context, the request waits for its client: it is no work that others wait for."""
        began, waits_since = self._began, current_time()
        self.hold()
        try:
            yield
        finally:
            self._began = self.context.admission.resume(began, waits_since)

    def _serve_request(self) -> Awaitable[bool]:
        """Starts the application. The result is whether another request may follow.

        Not a coroutine, and nothing is kept of the received bytes: a request may wait for a long time.
        """
        head_bytes, self._head_bytes = self._head_bytes, b""
        head = read_head(head_bytes, self.context.limits.max_headers)
        self._is_new = False
        if head.websocket:
            self.hold()
        exchange = WebSocketExchange(self, head) if head.websocket else HttpExchange(self, head)
        return exchange.run(self.context.app(exchange.scope(head), exchange.receive, exchange.send))

    async def _receive_head(self) -> bool:
        """Receives the head of the next request, up to and including its empty line. Returns False if none comes."""
        limits, clock = self.context.limits, self.context.clock
        self.response_started = False
        current_request_id.set(None)  # later log lines do not belong to the previous request
        current_span.set(None)  # it has ended
        if self.buffer:
            await checkpoint()  # else a client that pipelines requests could occupy this process
        has_skipped = self._skip_empty_line()
        while not self.buffer:
            if self.context.draining and not self._is_new and not is_readable(self.sock):
                return False
            self._state, self.deadline = ConnectionState.IDLE, clock.now + limits.keep_alive_s
            self.buffer = (self._is_new and self._read_available()) or await self._read(MAX_HEAD_READ)
            if not self.buffer:
                return False
            has_skipped = has_skipped or self._skip_empty_line()
        self._state, self.deadline = ConnectionState.HEAD, clock.now + limits.head_s
        searched = 0
        while (end := head_end(self.buffer, searched, limits.max_head_bytes)) < 0:
            searched = len(self.buffer)
            more = await self._read(MAX_HEAD_READ)
            if not more:
                return False
            self.buffer += more
        self._head_bytes, self.buffer = self.buffer[:end], self.buffer[end:]
        return True

    def _skip_empty_line(self) -> bool:
        """Removes the empty line that some clients send after a body (RFC 9112 section 2.2). It begins no request."""
        is_empty_line = self.buffer.startswith(b"\r\n")
        if is_empty_line:
            self.buffer = self.buffer[2:]
        return is_empty_line

    # Ending the connection

    def expire(self) -> None:
        self.deadline = NEVER
        if self._websocket is not None:
            self._websocket.on_silence()
        elif self._state in (ConnectionState.HEAD, ConnectionState.BODY):
            self.reject(RequestRejected(408, "the request did not arrive in time"))
        elif self._state is ConnectionState.IDLE:
            self.close_if_idle(include_new=True)  # if this process was busy, a request may have arrived and not be read
        else:
            self._scope.cancel()

    def reject(self, rejection: RequestRejected) -> None:
        """Ends the connection. Sends the rejection first, unless a response was started."""
        self._rejection = rejection
        self._scope.cancel()

    def client_disconnected(self) -> None:
        self._scope.cancel()

    def close_if_idle(self, *, include_new: bool) -> None:
        """Closes the connection unless it has a request; ``include_new``: even if it has not sent its first one yet."""
        idle = self._state is ConnectionState.IDLE and (include_new or not self._is_new)
        if idle and not self.buffer and not is_readable(self.sock):
            self._scope.cancel()

    async def abort(self) -> NoReturn:
        """Cancels the connection and, unless it is shielded, the caller."""
        self._scope.cancel()
        await checkpoint()
        raise ConnectionResetError

    async def _close_gracefully(self) -> None:
        """Sends the rejection, if any, and reads until the client stops sending: else TCP may discard the response."""
        context, rejection = self.context, self._rejection
        with suppress(OSError), trio.move_on_after(context.limits.linger_s):
            if rejection:
                context.log(_log.debug, "http.request_rejected", status=rejection.status, reason=rejection.reason)
                if not self.response_started:
                    await self._write_remaining(context.render_rejection(rejection))
            self.sock.shutdown(socket.SHUT_WR)
            remaining = context.limits.max_linger_bytes
            while remaining > 0 and (data := await self._read(MAX_READ)):
                remaining -= len(data)

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return _DisconnectWatch(self)

    def watch_silence(self, websocket: SilenceObserver) -> None:
        """Calls ``on_silence`` if the client sends nothing for some seconds from now."""
        self._websocket = websocket
        self._state, self.deadline = ConnectionState.WEBSOCKET, self.context.clock.now + self.context.limits.ping_s

    def silence_ends_soon(self) -> bool:
        """Returns whether ``on_silence`` will be called soon, so that a ping can be sent with another message.

        The next heartbeat but one is due two seconds before ``on_silence``, so a ping rarely needs its own packet.
        """
        context = self.context
        return self.deadline - context.clock.now < context.limits.ping_s / 3

    def watch_answer(self) -> None:
        """Calls ``on_silence`` if the client does not answer a ping. A ping that was sent early gives it more time."""
        due = self.context.clock.now if self.deadline == NEVER else self.deadline
        self.deadline = due + self.context.limits.pong_s

    # The socket

    async def read_more(self, deadline: float) -> None:
        """Appends further bytes of a body to the buffer."""
        self._state, self.deadline = ConnectionState.BODY, deadline
        try:
            with self._waiting_for_client():
                data = await self._read(MAX_READ)
        finally:
            self._state, self.deadline = ConnectionState.RESPONSE, NEVER  # also if the handler stops waiting
        if not data:
            await self.abort()
        self.buffer += data

    async def write(self, data: bytes) -> None:
        try:
            sent = self._send_at_once(data)
            if sent < len(data):
                with self._waiting_for_client():
                    await self._write_as_read(memoryview(data)[sent:])
                self.deadline = NEVER
        except OSError:
            await self.abort()

    def _send_at_once(self, data: bytes) -> int:
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0

    async def _write_as_read(self, remaining: memoryview) -> None:
        """Writes as fast as the client reads, which may be slow, but must go on."""
        clock, limits = self.context.clock, self.context.limits
        end = clock.now + limits.write_s + len(remaining) / limits.min_read_bytes_per_s
        while remaining:
            self.deadline = min(clock.now + limits.write_s, end)
            remaining = await self._write_some(remaining)

    async def _write_remaining(self, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = await self._write_some(remaining)

    async def _write_some(self, data: memoryview) -> memoryview:
        """Returns what is left."""
        await wait_writable(self.sock)
        try:
            return data[self.sock.send(data) :]
        except BlockingIOError:
            return data

    def _read_available(self) -> bytes:
        """Returns the bytes that have already arrived.

        After an accept or a pause there usually are some, which saves two system calls.
        """
        try:
            return self.sock.recv(MAX_HEAD_READ)
        except OSError:
            return b""

    async def _read(self, max_bytes: int) -> bytes:
        """Returns b"" at the end of the stream."""
        while True:
            await wait_readable(self.sock)
            try:
                return self.sock.recv(max_bytes)
            except BlockingIOError:
                continue
            except OSError:
                return b""


class _DisconnectWatch:
    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        connection = self._connection
        connection.hold()
        connection.context.disconnects.add(connection.sock.fileno(), connection)

    def __exit__(self, *_: object) -> None:
        self._connection.context.disconnects.remove(self._connection.sock.fileno())
