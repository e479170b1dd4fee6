"""A WebSocket on a connection of the built-in server: wsproto reads its frames, the application gets ASGI messages.

A worker may have ten thousand, so a WebSocket has no task, timer or queue of its own: the application's task reads the
frames when it calls ``receive``, writing does not wait while the client reads fast enough, and the clock of all
connections sends the pings. (trio-websocket takes 22 kB and 0.4 ms for a connection, and 38 us for a message; the
frames of wsproto take 4 kB, 0.03 ms and 6 us.)
"""

import socket
from collections.abc import Awaitable
from contextlib import suppress
from enum import Enum
from typing import Any
from urllib.parse import unquote

import structlog
import trio
from wsproto.connection import Connection as FrameReader
from wsproto.connection import ConnectionType
from wsproto.events import CloseConnection, Message, Ping
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

from sso.core.rate_window import RateWindow
from sso.serve.http1.connection_interface import ConnectionInterface
from sso.serve.http1.frames import BINARY, EMPTY_PING, PONG, TEXT, accept_value, close_frame, frame, is_empty_pong
from sso.serve.http1.head import Header, RequestHead
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import InvalidResponse
from sso.serve.http1.response_writer import ResponseWriter
from sso.serve.http1.websocket_limits import FRAMES_S, MAX_FRAMES, ReadRateLimit
from sso.serve.http1.websocket_output import WebSocketOutput
from sso.web.client_connection import FAST_EXTENSION
from sso.web.websocket import CLIENT_FLOODED, MAX_MESSAGE_BYTES

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_ABNORMAL_CLOSE = 1006  # the code for a connection without a close frame
_log = structlog.get_logger()


class WebSocketState(Enum):
    CONNECTING = "connecting"  # the application has not accepted or refused yet
    REFUSED = "refused"
    OPEN = "open"
    CLOSING = "closing"  # one side has sent its close frame, or the client has disconnected


class _Refusal(ResponseWriter):
    """The response of an application that refuses the WebSocket."""

    __slots__ = ()

    def _request_is_read(self) -> bool:
        return True


class WebSocketExchange(WebSocketOutput):
    """Also implements ``FastWebSocket`` of sso.web.client_connection."""

    __slots__ = (
        "_connect_received", "_extensions", "_frames", "_handshake", "_limit_exceeded", "_message", "_message_bytes",
        "_messages", "_ping_sent", "_rate_limit", "_reader", "_refusal", "_state",
    )  # fmt: skip

    def __init__(self, connection: ConnectionInterface, head: RequestHead) -> None:
        super().__init__(connection)
        self._handshake: RequestHead | None = head  # until the application has accepted or refused
        self._refusal: ResponseWriter | None = None
        self._state = WebSocketState.CONNECTING
        self._connect_received = False
        self._extensions: dict[str, Any] = {"websocket.http.response": {}, FAST_EXTENSION: self}
        self._reader: FrameReader | None = None  # most clients never send more than pongs
        self._rate_limit: ReadRateLimit | None = None
        self._frames: RateWindow | None = None
        self._messages: list[dict[str, Any]] = []  # received and not yet passed to the application
        self._message: Any = None  # the fragments of a message so far
        self._message_bytes = 0
        self._limit_exceeded = False  # the application closes the WebSocket; until then nothing more is read
        self._ping_sent = False

    def scope(self, head: RequestHead) -> dict[str, Any]:
        path = head.path.decode("ascii")
        return {
            "type": "websocket",
            "asgi": _ASGI,
            "http_version": head.version,
            "scheme": "ws",
            "path": unquote(path) if "%" in path else path,
            "raw_path": head.path,
            "query_string": head.query,
            "root_path": "",
            "headers": head.headers,
            "client": self._connection.client,
            "server": self._connection.local_address,
            "subprotocols": [],  # none is offered
            "extensions": self._extensions,
        }

    async def run(self, application: Awaitable[None]) -> bool:
        """Awaits the application's coroutine. Returns False: no request can follow."""
        try:
            await application
        except Exception as error:
            traceback = not isinstance(error, InvalidResponse)
            _log.error("http.application_failed", error=type(error).__name__, exc_info=traceback)
            if self._state is WebSocketState.CONNECTING:
                self._connection.reject(RequestRejected(500, "internal error"))
            else:
                self._close(CloseReason.INTERNAL_ERROR)
        if self._state is WebSocketState.CONNECTING:
            await self._refuse()
        self._connection.has_unread_body = True  # the client answers the close frame, and then disconnects
        return False

    # Messages to the application

    async def receive(self) -> dict[str, Any]:
        if not self._connect_received:
            self._connect_received = True
            return {"type": "websocket.connect"}
        while not self._messages:
            if self._state is WebSocketState.CLOSING:
                return _disconnect(_ABNORMAL_CLOSE)
            if self._limit_exceeded:
                await trio.sleep_forever()  # until the application closes the WebSocket
            await self._read_frames()
        return self._messages.pop(0)

    async def _read_frames(self) -> None:
        connection = self._connection
        data, connection.buffer = connection.buffer, b""
        data = data or await connection.context.frame_waits.read(connection.sock, self._is_awaited_pong)
        if not data:
            self._disconnected(_ABNORMAL_CLOSE)
            return
        connection.watch_silence(self)
        self._ping_sent = False
        self._parse(data)
        if self._rate_limit is None:
            self._rate_limit = ReadRateLimit()
        await self._rate_limit.wait_after(len(data))

    def _is_awaited_pong(self, data: bytes) -> bool:
        """Returns whether the data is only the answer to a ping, and notes it."""
        if not (self._ping_sent and is_empty_pong(data)):
            return False
        self._ping_sent = False
        self._connection.watch_silence(self)
        return True

    def _parse(self, data: bytes) -> None:
        if self._reader is None:
            self._reader = FrameReader(ConnectionType.SERVER)
            self._frames = RateWindow(MAX_FRAMES, FRAMES_S)
        try:
            self._reader.receive_data(data)
            for event in self._reader.events():
                self._handle(event)
                if self._limit_exceeded or self._state is WebSocketState.CLOSING:
                    break  # wsproto parses a frame when this loop asks for it
        except RemoteProtocolError as error:
            hint = error.event_hint
            self._close(hint.code if isinstance(hint, CloseConnection) else CloseReason.PROTOCOL_ERROR)
            self._disconnected(_ABNORMAL_CLOSE)

    def _handle(self, event: Any) -> None:
        assert self._frames is not None
        if isinstance(event, CloseConnection):
            self._close(CloseReason.NORMAL_CLOSURE if event.code == CloseReason.NO_STATUS_RCVD else event.code)
            self._disconnected(event.code)
        elif getattr(event, "frame_finished", True) and self._frames.exceeded(trio.current_time()):
            self._limit_exceeded = True
            self._extensions[CLIENT_FLOODED] = {}
            self._messages.append(_message(b""))
        elif isinstance(event, Message):
            self._receive_fragment(event)
        elif isinstance(event, Ping):
            self._write(frame(PONG, bytes(event.payload)))

    def _receive_fragment(self, event: Message[Any]) -> None:
        """Passes on a complete message, or an incomplete one that exceeds the limit, which the application checks."""
        data = event.data if isinstance(event.data, str) else bytes(event.data)
        self._message = data if self._message is None else self._message + data
        self._message_bytes += len(data.encode() if isinstance(data, str) else data)
        self._limit_exceeded = self._message_bytes > MAX_MESSAGE_BYTES
        if event.message_finished or self._limit_exceeded:
            self._messages.append(_message(self._message))
            self._message, self._message_bytes = None, 0

    def _disconnected(self, code: int) -> None:
        self._state = WebSocketState.CLOSING
        self._messages.append(_disconnect(code))

    # Messages from the application

    async def send(self, message: dict[str, Any]) -> None:
        match message["type"], self._state:
            case "websocket.send", WebSocketState.OPEN:
                text = message.get("text")
                self._write(frame(BINARY, message["bytes"]) if text is None else frame(TEXT, text.encode()))
                await self._flush()
            case "websocket.accept", WebSocketState.CONNECTING:
                await self._accept(message.get("headers", ()))
            case "websocket.close", WebSocketState.OPEN:
                self._close(message.get("code", 1000), message.get("reason") or "")
                await self._flush()
            case "websocket.close", WebSocketState.CONNECTING:
                await self._refuse()
            case "websocket.http.response.start" | "websocket.http.response.body", WebSocketState.CONNECTING:
                await self._respond(message)
            case "websocket.send" | "websocket.close", WebSocketState.CLOSING:
                pass  # the client was faster
            case kind, _:
                raise InvalidResponse(f"{kind} is not expected now")

    def try_send_text(self, data: bytes) -> bool:
        """Writes a message at once. Returns False, and writes nothing, if earlier bytes have to wait for the client."""
        if self._state is not WebSocketState.OPEN or self._must_wait():
            return False
        message = frame(TEXT, data)
        if not self._ping_sent and self._connection.silence_ends_soon():
            self._ping_sent = True
            self._connection.watch_answer()
            message += EMPTY_PING
        self._write(message)
        return True

    async def _accept(self, headers: list[Header]) -> None:
        assert self._handshake is not None
        lines = [b"HTTP/1.1 101 \r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: "]
        lines += (accept_value(self._handshake.headers), b"\r\n", self._connection.context.clock.date_header)
        lines += [b"%b: %b\r\n" % header for header in headers]
        self._connection.response_started = True
        self._handshake = None
        self._state = WebSocketState.OPEN
        self._connection.watch_silence(self)
        self._write(b"".join((*lines, b"\r\n")))
        await self._flush()

    async def _refuse(self) -> None:
        await self._respond({"type": "websocket.http.response.start", "status": 403, "headers": []})
        await self._respond({"type": "websocket.http.response.body", "body": b""})

    async def _respond(self, message: dict[str, Any]) -> None:
        if self._refusal is None:
            assert self._handshake is not None
            self._refusal = _Refusal(self._connection, self._handshake)
        await self._refusal.send(message | {"type": message["type"].removeprefix("websocket.")})
        if self._refusal.finished:
            self._state = WebSocketState.REFUSED

    def _close(self, code: int, reason: str = "") -> None:
        if self._state is WebSocketState.OPEN:
            self._write(close_frame(code, reason))
            self._state = WebSocketState.CLOSING

    # Silence

    def on_silence(self) -> None:
        """Sends a ping to a silent client, or disconnects it if it has not answered the last one."""
        if not self._ping_sent:
            self._ping_sent = True
            self._write(EMPTY_PING)
            self._connection.watch_answer()
        else:
            with suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)  # `receive` then reports the end of the stream


def _message(data: str | bytes) -> dict[str, Any]:
    text, binary = (data, None) if isinstance(data, str) else (None, data)
    return {"type": "websocket.receive", "text": text, "bytes": binary}


def _disconnect(code: int) -> dict[str, Any]:
    return {"type": "websocket.disconnect", "code": code}
