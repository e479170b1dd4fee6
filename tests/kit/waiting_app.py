"""An application that waits, and learns what became of its client."""

import socket
import struct

import trio
import trio.lowlevel
from quart_trio import QuartTrio

from sso.log import current_request_id
from sso.web.client_connection import client_connection
from sso.web.fast_quart.app import FastQuart
from tests.kit.raw_http import RawConnection, RunningServer

REQUEST_ID = "0123456789abcdef"


LONG = 20_000_000  # more than the buffers of the kernel take


BUFFERED = 600_000  # less than the sender's buffer takes, more than the receiver's


class App:
    """Handlers that wait, and a record of what happens to them."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.last_request_id: str | None = None
        self.waiting = trio.Event()
        self.proceed = trio.Event()
        self.ended = trio.Event()
        self.quart: QuartTrio = FastQuart("test")
        self.quart.get("/hold")(self.hold)
        self.quart.get("/claim")(self.claim)
        self.quart.get("/long")(self.long)
        self.quart.get("/buffered")(self.buffered)

    async def hold(self) -> str:
        try:
            with client_connection().cancel_on_disconnect(), client_connection().cancel_on_disconnect():
                self.waiting.set()
                await self.proceed.wait()
            self.events.append("served")
        except trio.Cancelled:
            self.events.append("cancelled")
            raise
        finally:
            self.ended.set()
        return "held"

    async def claim(self) -> str:
        current_request_id.set(REQUEST_ID)
        client_connection().on_response_end = self.end
        self.waiting.set()
        with trio.CancelScope(shield=True):
            await self.proceed.wait()
        self.events.append("claimed")
        return "claimed"

    async def long(self) -> str:
        client_connection().on_response_end = self.end
        return "a" * LONG

    async def buffered(self) -> str:
        client_connection().on_response_end = self.end
        return "a" * BUFFERED

    async def end(self, delivered: bool) -> None:
        await trio.lowlevel.checkpoint()  # it may wait, although the request was cancelled
        self.events.append("delivered" if delivered else "taken back")
        self.last_request_id = current_request_id.get()
        self.ended.set()


async def get(server: RunningServer, path: str) -> RawConnection:
    connection = await server.open()
    await connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection


async def disconnect(connection: RawConnection, how: str) -> None:
    if how == "shutdown of the sending side":
        await connection.stream.send_eof()
        return
    if how == "reset":
        connection.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await connection.stream.aclose()
