"""Connections that want something else than plain HTTP/1.x: hypercorn takes them, with what was read so far."""

import socket
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from sso.serve import hypercorn
from sso.serve.hypercorn_connection import Connection
from sso.serve.limits import Limits


class Resumed:
    """A stream that begins with bytes that were read already."""

    def __init__(self, sock: socket.socket, read: bytes) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._read = read
        self.socket = self._stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._read:
            data, self._read = self._read, b""
            return data
        return bytes(await self._stream.receive_some(max_bytes))

    async def send_all(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


class Other:
    def __init__(self, app: Any, stop: trio.Event, limits: Limits) -> None:
        self._app = ASGIWrapper(hypercorn.ending_well(app, stop))
        self._config = hypercorn.configuration(limits)
        self._context = WorkerContext(None)

    async def take(self, sock: socket.socket, read: bytes) -> None:
        stream: Any = Resumed(sock, read)
        await Connection(self._app, self._config, self._context, ConnectionState({}), stream)

    async def drain(self) -> None:
        """Those that do nothing are closed, the others when they have done."""
        await self._context.terminated.set()
