"""A connection: one request after the other, in one task, until somebody has had enough."""

import socket
from collections.abc import Awaitable
from contextlib import AbstractContextManager, suppress
from enum import Enum
from typing import TYPE_CHECKING, NoReturn

import structlog
import trio
from trio.lowlevel import checkpoint, wait_readable, wait_writable

from sso.log import current_request_id
from sso.serve.http1.exchange import HttpExchange
from sso.serve.http1.head import head_end, read_head
from sso.serve.http1.rejections import RequestRejected

if TYPE_CHECKING:
    from sso.serve.http1.server import Http1Server

Address = tuple[str, int]
NEVER = float("inf")
MAX_READ = 64 * 1024
MAX_HEAD_READ = 16 * 1024
_log = structlog.get_logger()


class UpgradeRequested(Exception):
    """The request opens a WebSocket."""


class ConnectionState(Enum):
    """What a deadline is for."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"


class Connection:
    """Whatever ends it early cancels its scope: a deadline, a refusal, a client that left, the end of the drain."""

    __slots__ = (
        "_raw", "_refused", "_watching", "begun", "client", "doing", "due", "fresh", "lane", "rest", "scope",
        "server", "sock", "unread",
    )  # fmt: skip

    def __init__(
        self, lane: "Http1Server", sock: socket.socket, client: Address | None, server: Address | None
    ) -> None:
        self.lane = lane
        self.sock = sock
        self.client = client
        self.server = server
        self.rest = b""  # read, and not yet understood
        self._raw = b""  # of it, the head of the next request
        self.scope = trio.CancelScope()
        self.doing = ConnectionState.IDLE
        self.due = NEVER
        self.fresh = True  # nothing was asked yet
        self.begun = False  # some of the present answer may have been written
        self.unread = False  # the client may still be sending what nobody wants
        self._refused: RequestRejected | None = None
        self._watching = 0

    async def run(self) -> None:
        lane = self.lane
        lane.connections.add(self)
        upgrade = False
        try:
            with self.scope:
                upgrade = await self._serve()
            self.due = NEVER
            if upgrade:
                await lane.other.take(self.sock, self.rest)
            elif self._refused or self.unread:
                await self._end_with_a_word()
        except Exception:
            lane.log(_log.exception, "http.connection_failed")
        finally:
            lane.connections.discard(self)
            lane.door.leave(self.client)
            self.sock.close()

    async def _serve(self) -> bool:
        """Returns whether the client asks for a WebSocket."""
        try:
            while await self._next_head():
                self.doing, self.due = ConnectionState.ANSWER, NEVER
                if not self.lane.turns.begin():
                    await self.lane.turns.wait()
                if not await self._exchange():
                    break
        except UpgradeRequested:
            return True
        except RequestRejected as refused:
            self._refused = refused
        return False

    def _exchange(self) -> Awaitable[bool]:
        """Whether the connection may go on after it. What was read is not kept: a request may wait for long."""
        raw, self._raw = self._raw, b""
        head = read_head(raw, self.lane.limits.max_headers)
        if head.websocket:
            self.rest = raw + self.rest
            raise UpgradeRequested
        self.fresh = False
        exchange = HttpExchange(self, head)
        return exchange.run(self.lane.app(exchange.scope(head), exchange.receive, exchange.send))

    async def _next_head(self) -> bool:
        """All of it, and nothing else; False when there is none to come."""
        limits, clock = self.lane.limits, self.lane.clock
        self.begun = False
        current_request_id.set(None)  # what is logged from here on is not about the last request
        if self.rest:
            await checkpoint()  # or a client that never waits would have this process to itself
        elif self.lane.draining and not self.fresh:
            return False
        else:
            self.doing, self.due = ConnectionState.IDLE, clock.now + limits.keep_alive_s
            self.rest = (self.fresh and self._at_hand()) or await self._read(MAX_HEAD_READ)
            if not self.rest:
                return False
        self.doing, self.due = ConnectionState.HEAD, clock.now + limits.head_s
        if self.rest.startswith(b"\r\n"):
            self.rest = self.rest[2:]  # some end a body with it (RFC 9112 section 2.2)
        searched = 0
        while (end := head_end(self.rest, searched, limits.max_head_bytes)) < 0:
            searched = len(self.rest)
            more = await self._read(MAX_HEAD_READ)
            if not more:
                return False
            self.rest += more
        self._raw, self.rest = self.rest[:end], self.rest[end:]
        return True

    # Its ends

    def expire(self) -> None:
        self.due = NEVER
        if self.doing in (ConnectionState.HEAD, ConnectionState.BODY):
            self.refuse(RequestRejected(408, "the request did not come in time"))
        else:
            self.scope.cancel()

    def refuse(self, refused: RequestRejected) -> None:
        """The present request, if nothing was answered yet; in any case it is the last."""
        self._refused = refused
        self.scope.cancel()

    def client_left(self) -> None:
        self.scope.cancel()

    async def ended(self) -> NoReturn:
        """Unless something shields it, what calls this is cancelled here."""
        self.scope.cancel()
        await checkpoint()
        raise ConnectionResetError

    async def _end_with_a_word(self) -> None:
        """A socket that is closed while its client still sends loses the answer on the way."""
        lane = self.lane
        with suppress(OSError), trio.move_on_after(lane.limits.linger_s):
            if self._refused:
                refused = self._refused
                lane.log(_log.debug, "http.request_refused", status=refused.status, reason=refused.reason)
            if self._refused and not self.begun:
                await self._write_on(lane.refusal(self._refused))
            self.sock.shutdown(socket.SHUT_WR)
            left = lane.limits.max_linger_bytes
            while left > 0 and (data := await self._read(MAX_READ)):
                left -= len(data)

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return _Watch(self)

    # The socket

    async def read_more(self, due: float) -> None:
        """More of a body."""
        self.doing, self.due = ConnectionState.BODY, due
        try:
            data = await self._read(MAX_READ)
        finally:
            self.doing, self.due = ConnectionState.ANSWER, NEVER  # also where the handler has had enough of waiting
        if not data:
            await self.ended()
        self.rest += data

    async def write(self, data: bytes) -> None:
        try:
            sent = self.sock.send(data)
            if sent < len(data):
                self.due = self.lane.clock.now + self.lane.limits.write_s
                await self._write_on(memoryview(data)[sent:])
                self.due = NEVER
        except BlockingIOError:
            self.due = self.lane.clock.now + self.lane.limits.write_s
            await self._write_on(data)
            self.due = NEVER
        except OSError:
            await self.ended()

    async def _write_on(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:
            await wait_writable(self.sock)
            with suppress(BlockingIOError):
                left = left[self.sock.send(left) :]

    def _at_hand(self) -> bytes:
        """Who connects asks at once: mostly there is something already, and no need to have the system watch for it."""
        try:
            return self.sock.recv(MAX_HEAD_READ)
        except OSError:
            return b""

    async def _read(self, most: int) -> bytes:
        """Nothing when there is nothing to come."""
        while True:
            await wait_readable(self.sock)
            try:
                return self.sock.recv(most)
            except BlockingIOError:
                continue
            except OSError:
                return b""


class _Watch:
    """Several may be open at a time."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        connection = self._connection
        if connection._watching == 0:
            connection.lane.watcher.add(connection.sock.fileno(), connection)
        connection._watching += 1

    def __exit__(self, *_: object) -> None:
        connection = self._connection
        connection._watching -= 1
        if connection._watching == 0:
            connection.lane.watcher.remove(connection.sock.fileno())
