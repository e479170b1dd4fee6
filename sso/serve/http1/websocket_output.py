"""The bytes that a WebSocket sends: written at once as far as the client takes them, or collected for one packet."""

import trio

from sso.serve.http1.connection_interface import ConnectionInterface

MAX_UNSENT_BYTES = 64 * 1024  # for a client that sends pings and does not read


class WebSocketOutput:
    __slots__ = ("_connection", "_corked", "_unsent")

    def __init__(self, connection: ConnectionInterface) -> None:
        self._connection = connection
        self._corked = False
        self._unsent = b""

    def cork(self) -> None:
        """Collects what is written from now on, until ``uncork``."""
        self._corked = True

    async def uncork(self) -> None:
        """Writes what was collected: one packet takes half the time of two, here and for the client."""
        self._corked = False
        unsent, self._unsent = self._unsent, b""
        if unsent:
            self._write(unsent)
            await self._flush()

    def _must_wait(self) -> bool:
        """Returns whether earlier bytes have to wait for the client."""
        return bool(self._unsent) and not self._corked

    def _write(self, data: bytes) -> None:
        """Writes as much as the client takes now. If the connection is broken, ``receive`` reports it."""
        if not self._unsent and not self._corked:
            try:
                data = data[self._connection.sock.send(data) :]
            except BlockingIOError:
                pass
            except OSError:
                return
        self._unsent += data
        if len(self._unsent) > MAX_UNSENT_BYTES:
            self._connection.client_disconnected()

    async def _flush(self) -> None:
        """Waits until the client has taken what was written, which is usually at once."""
        if not self._must_wait():
            return
        with trio.move_on_after(self._connection.context.limits.write_s) as limit:
            while self._unsent:
                await trio.lowlevel.wait_writable(self._connection.sock)
                unsent, self._unsent = self._unsent, b""
                self._write(unsent)
        if limit.cancelled_caught:
            await self._connection.abort()
