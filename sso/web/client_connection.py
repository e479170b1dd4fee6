"""The connection of the client, as a handler sees it. The HTTP server puts these objects into the ASGI scope."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from sso.web.request import current_request

# Keys in the extensions of the ASGI scope.
CONNECTION_EXTENSION = "sso.connection"  # a ClientConnection
FAST_EXTENSION = "sso.fast"  # a FastExchange or FastWebSocket

RawHeaders = list[tuple[bytes, bytes]]
SharedHeaders = tuple[tuple[bytes, bytes], ...]


class ClientConnection(Protocol):
    on_response_end: Callable[[bool], Awaitable[None]] | None
    """Called once, shielded from cancellation: with True after the last byte of the response was written, with False if
    the response could not be written."""

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        """Inside this context, a disconnect of the client cancels the request. Elsewhere it may go unnoticed."""


class FastExchange(Protocol):
    """One request and its response on a server that needs no ASGI messages and no task per request.

    Such a server has checked the limits of the head, reads a body only when it is asked for, and cancels the request
    if the client disconnects.
    """

    @property
    def declared_length(self) -> int:
        """The content length of the request, or 0 if it is not known."""

    def buffered_body(self) -> bytes | None:
        """Returns the whole body if all of it was received, else None."""

    def respond(self, status: int, headers: RawHeaders, data: bytes, shared: SharedHeaders = ()) -> Awaitable[None]:
        """Writes the whole response. ``shared``: headers that many responses have in common."""

    async def send(self, message: Any) -> None:
        """The ``send`` function of ASGI, for responses that are streamed."""


class FastWebSocket(Protocol):
    """A WebSocket whose ``receive`` waits for the client, and whose short messages are written without waiting."""

    def try_send_text(self, data: bytes) -> bool:
        """Writes a message at once. Returns False, and writes nothing, if earlier bytes have to wait for the client."""

    def cork(self) -> None:
        """Collects what is written from now on, the response to the handshake too, until ``uncork``."""

    async def uncork(self) -> None:
        """Writes what was collected, in one packet."""


class UnknownConnection:
    """Used if the server provides no ClientConnection, as in tests without a server."""

    on_response_end: Callable[[bool], Awaitable[None]] | None = None

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return nullcontext()


def client_connection() -> ClientConnection:
    """Returns the connection of the current request."""
    extensions: dict[str, Any] = current_request().scope.get("extensions") or {}
    return extensions.get(CONNECTION_EXTENSION) or UnknownConnection()


def hold_request() -> AbstractContextManager[None]:
    """Inside this context, the current request waits for an event: it is no load, and a disconnect cancels it."""
    return client_connection().cancel_on_disconnect()


def send_response(
    scope: Any, send: Any, status: int, headers: RawHeaders, data: bytes, shared: SharedHeaders = ()
) -> Awaitable[None]:
    """Sends a whole response, in one call if the server supports that."""
    exchange: FastExchange | None = (scope.get("extensions") or {}).get(FAST_EXTENSION)
    if exchange:
        return exchange.respond(status, headers, data, shared)
    return _send_messages(send, status, [*shared, *headers], data)


async def _send_messages(send: Any, status: int, headers: RawHeaders, data: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": False})
