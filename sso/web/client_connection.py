"""What a handler that waits must know of its client's connection. Whatever serves puts one of these into the scope."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from sso.web.request import current_request

# Among the extensions of the ASGI scope.
CONNECTION_EXTENSION = "sso.wire"
FAST_EXTENSION = (
    "sso.lean"  # the head is within its limits; a body is read when asked for, and a client that leaves cancels
)

RawHeaders = list[tuple[bytes, bytes]]
SharedHeaders = tuple[tuple[bytes, bytes], ...]


class ClientConnection(Protocol):
    on_undelivered: Callable[[], Awaitable[None]] | None
    """Run, shielded, if the answer to this request could not be written."""

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        """Inside, a client that leaves ends the request: it is cancelled. Elsewhere its leaving need not be noticed."""


class FastExchange(Protocol):
    """What a server that has LEAN among its extensions puts there."""

    @property
    def declared(self) -> int:
        """The length of the request's body, as far as it was told."""

    def buffered_body(self) -> bytes | None:
        """All of that body, if it has come already."""

    def answer(self, status: int, headers: RawHeaders, data: bytes, usual: SharedHeaders = ()) -> Awaitable[None]:
        """All of it at once, instead of by messages. ``usual``: headers that many answers have in common."""

    async def send(self, message: Any) -> None:
        """As ASGI has it."""


class UnknownConnection:
    """Where nobody can tell, as in tests without a server."""

    on_undelivered: Callable[[], Awaitable[None]] | None = None

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return nullcontext()


def client_connection() -> ClientConnection:
    """Of this request."""
    extensions: dict[str, Any] = current_request().scope.get("extensions") or {}
    return extensions.get(CONNECTION_EXTENSION) or UnknownConnection()


def send_response(
    scope: Any, send: Any, status: int, headers: RawHeaders, data: bytes, usual: SharedHeaders = ()
) -> Awaitable[None]:
    """The whole answer, in the shortest way that the server knows."""
    lean: FastExchange | None = (scope.get("extensions") or {}).get(FAST_EXTENSION)
    return lean.answer(status, headers, data, usual) if lean else _sent(send, status, [*usual, *headers], data)


async def _sent(send: Any, status: int, headers: RawHeaders, data: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": False})
