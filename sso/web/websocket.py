"""WebSockets: why a handler was cancelled, and whether the client exceeded the limits.

Trio's cancellation gives a handler no reason, so the connection records a disconnect of the client.
"""

from typing import Any

from quart import websocket
from quart_trio.asgi import TrioASGIWebsocketConnection

from sso.web.client_connection import FAST_EXTENSION, FastWebSocket
from sso.web.request_tracing import started_span

CLIENT_LEFT = "sso.client_left"  # a key in the extensions of the ASGI scope
CLIENT_FLOODED = "sso.client_flooded"  # likewise, set by the server
MAX_MESSAGE_BYTES = 4096  # all fragments together


class WebSocketConnection(TrioASGIWebsocketConnection):
    close_code: int | None = None  # what the server sent; hypercorn does not pass on what the client sent

    async def __call__(self, receive: Any, send: Any) -> None:
        async def receive_and_record() -> Any:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.scope["extensions"][CLIENT_LEFT] = {}
            return message

        async def send_and_record(message: Any) -> None:
            if message["type"] == "websocket.close":
                self.close_code = message.get("code", 1000)
            await send(message)

        try:
            await super().__call__(receive_and_record, send_and_record)
        finally:
            if span := started_span(self.scope):
                span.closed(self.close_code)  # has no effect if the socket was refused


def client_has_left() -> bool:
    """Returns whether the client closed the WebSocket or disconnected; False if the server ended it."""
    return CLIENT_LEFT in websocket.scope["extensions"]


def fast_websocket() -> FastWebSocket | None:
    """Returns the current WebSocket if its server can write a message without waiting."""
    extensions: dict[str, Any] = websocket.scope["extensions"]
    found: FastWebSocket | None = extensions.get(FAST_EXTENSION)
    return found


def client_has_flooded() -> bool:
    """Returns whether the client sent more frames, including pings and pongs, than the server accepts."""
    return CLIENT_FLOODED in websocket.scope["extensions"]
