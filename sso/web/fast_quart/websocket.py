"""WebSockets without the tasks and channels that Quart makes for each, on a server with FastWebSocket."""

from functools import partial
from typing import Any

import trio
from quart.asgi import ASGIWebsocketConnection
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioWebsocket
from werkzeug.datastructures import Headers

from sso.web.fast_quart.request import read_headers
from sso.web.request_tracing import started_span
from sso.web.websocket import CLIENT_LEFT


class TasklessWebsocket(TrioWebsocket):
    """It uses the server's ``receive``: the handler waits for the client in its own task."""

    async def send(self, data: str | bytes) -> None:
        await self._send(data)

    def receive(self) -> Any:
        return self._receive()


class FastWebSocketConnection(ASGIWebsocketConnection):
    def __init__(self, app: QuartTrio, scope: Any, receive: Any, send: Any) -> None:
        # Not Quart's own constructor, which makes a queue.
        self.app = app
        self.scope = scope
        self._accepted = False
        self._closed = False
        self._receive = receive
        self._send = send
        self._handler = trio.CancelScope()
        self._close_code: int | None = None

    async def serve(self) -> None:
        try:
            with self._handler:
                await self.handle_websocket(self._websocket(), self._send)
        finally:
            if span := started_span(self.scope):
                span.closed(self._close_code)  # has no effect if the WebSocket was refused

    def _websocket(self) -> TasklessWebsocket:
        scope, send = self.scope, self._send
        return TasklessWebsocket(
            scope["path"],
            scope["query_string"],
            scope["scheme"],
            read_headers(scope, indexed=False),
            "",
            scope["http_version"],
            [],
            self.receive_message,
            partial(self.send_data, send),
            partial(self.accept_connection, send),
            partial(self.close_connection, send),
            scope=scope,
        )

    async def receive_message(self) -> str | bytes:
        """Waits for a message. A disconnect of the client cancels the handler."""
        while True:
            event = await self._receive()
            if event["type"] == "websocket.receive":
                message: str | bytes = event.get("bytes") or event["text"]
                return message
            if event["type"] == "websocket.disconnect":
                self.scope["extensions"][CLIENT_LEFT] = {}
                self._handler.cancel()
                await trio.sleep_forever()

    async def accept_connection(self, send: Any, headers: Headers, subprotocol: str | None) -> None:
        await super().accept_connection(send, headers, subprotocol)
        self.scope["headers"] = ()  # the handler has its own copy, and a WebSocket may be open for a long time

    async def close_connection(self, send: Any, code: int, reason: str) -> None:
        self._close_code = code
        await super().close_connection(send, code, reason)

    async def send_data(self, send: Any, data: str | bytes) -> None:
        text, binary = (data, None) if isinstance(data, str) else (None, data)
        await send({"type": "websocket.send", "text": text, "bytes": binary})
