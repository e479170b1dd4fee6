"""The part of a connection that an exchange (one request and its response) uses, as a protocol.

The exchange depends on this protocol only, so that ``connection.py`` can import ``exchange.py`` without a cycle.
"""

import socket
from contextlib import AbstractContextManager
from typing import NoReturn, Protocol

from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.server_context import ServerContext


class SilenceObserver(Protocol):
    def on_silence(self) -> None: ...


class ConnectionInterface(Protocol):
    context: ServerContext
    sock: socket.socket
    client: tuple[str, int] | None
    local_address: tuple[str, int] | None
    buffer: bytes
    """Bytes that were received and not consumed yet."""
    response_started: bool
    """Part of the current response may have been written."""
    has_unread_body: bool
    """The client may still be sending a body that no handler reads."""

    async def read_more(self, deadline: float) -> None:
        """Appends further bytes of a body to the buffer."""

    async def write(self, data: bytes) -> None: ...

    def reject(self, rejection: RequestRejected) -> None:
        """Ends the connection. Sends the rejection first, unless a response was started."""

    async def abort(self) -> NoReturn:
        """Cancels the connection and, unless it is shielded, the caller."""

    def client_disconnected(self) -> None:
        """Ends the connection, because the client has left or does not read."""

    def watch_silence(self, websocket: "SilenceObserver") -> None:
        """Calls ``on_silence`` if the client sends nothing for some seconds from now."""

    def silence_ends_soon(self) -> bool:
        """Returns whether ``on_silence`` will be called soon, so that a ping can be sent with another message."""

    def watch_answer(self) -> None:
        """Calls ``on_silence`` if the client does not answer a ping."""

    def cancel_on_disconnect(self) -> AbstractContextManager[None]: ...
