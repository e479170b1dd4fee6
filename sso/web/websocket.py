"""A WebSocket that remembers whether its client has left: what cancels a handler does not say why."""

from typing import Any

from quart import websocket
from quart_trio.asgi import TrioASGIWebsocketConnection

CLIENT_LEFT = "sso.left"  # among the extensions of the ASGI scope
CLIENT_FLOODED = "sso.flood"  # likewise, set by the server
MAX_MESSAGE_BYTES = 4096  # over all fragments


class WebSocketConnection(TrioASGIWebsocketConnection):
    async def __call__(self, receive: Any, send: Any) -> None:
        async def receive_on() -> Any:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.scope["extensions"][CLIENT_LEFT] = {}
            return message

        await super().__call__(receive_on, send)


def client_has_left() -> bool:
    """Closed its socket, or is gone; as opposed to a server that has had enough."""
    return CLIENT_LEFT in websocket.scope["extensions"]


def client_has_flooded() -> bool:
    """Whether the client sent more frames, pings and pongs included, than the server reads."""
    return CLIENT_FLOODED in websocket.scope["extensions"]
