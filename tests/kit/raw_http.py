"""Runs the built-in HTTP server in this process with a small application, and sends exact bytes to it."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import trio

from sso.serve.http1 import server as http_server
from sso.serve.server_limits import ServerLimits
from sso.web.security_headers import data_headers

# For tests with the `virtual_clock` fixture, where these seconds pass as soon as all tasks wait.
SHORT_LIMITS = ServerLimits(
    keep_alive_s=0.3, head_s=0.3, body_s=0.3, write_s=0.3, linger_s=0.2, drain_s=2.0, first_request_s=0.1
)
RESPONSE_S = 60.0

App = Callable[[Any, Any, Any], Awaitable[None]]


def with_lifespan(handler: App) -> App:
    """Returns an application that also answers the lifespan messages of the server."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await handler(scope, receive, send)
            return
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})

    return run


async def read_body(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionResetError
        body += bytes(message["body"])
        if not message["more_body"]:
            return body


async def reply(send: Any, data: bytes, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    length = (b"content-length", b"%d" % len(data))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": data})


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Responds with the request as the application received it."""
    names = ("method", "path", "http_version", "scheme")
    request = {name: scope[name] for name in names}
    request |= {name: scope[name].decode("latin1") for name in ("raw_path", "query_string")}
    request["headers"] = [[name.decode("latin1"), value.decode("latin1")] for name, value in scope["headers"]]
    request["body"] = (await read_body(receive)).decode("latin1")
    await reply(send, orjson.dumps(request), headers=[(b"content-type", b"application/json")])


@dataclass
class RunningServer:
    address: Any
    stop: trio.Event = field(default_factory=trio.Event)
    stopped: trio.Event = field(default_factory=trio.Event)

    async def open(self) -> "RawConnection":
        if isinstance(self.address, str):
            return RawConnection(await trio.open_unix_socket(self.address))
        return RawConnection(await trio.open_tcp_stream(*self.address))

    async def request(self, data: bytes) -> "RawResponse":
        """Sends the bytes on a new connection. Returns the first response."""
        async with await self.open() as connection:
            await connection.send(data)
            return await connection.response(head_only=data.startswith(b"HEAD "))

    async def request_to_end(self, data: bytes) -> bytes:
        """Sends the bytes on a new connection. Returns everything that the server sends until it closes it."""
        async with await self.open() as connection:
            await connection.send(data)
            return await connection.read_to_end()


@asynccontextmanager
async def serving(
    handler: App = echo, limits: ServerLimits | None = None, path: str | None = None
) -> AsyncIterator[RunningServer]:
    listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
    listener.bind(path or ("127.0.0.1", 0))
    listener.listen(128)
    listener.setblocking(False)
    server = RunningServer(listener.getsockname())

    async def serve(*, task_status: trio.TaskStatus[None]) -> None:
        app = with_lifespan(handler)
        headers = data_headers(https=False)
        await http_server.serve(app, [listener], server.stop, task_status.started, limits, headers)
        server.stopped.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield server
        server.stop.set()
        nursery.cancel_scope.deadline = trio.current_time() + RESPONSE_S
    listener.close()


@dataclass
class RawResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class RawConnection:
    """The client's side of one connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def __aenter__(self) -> "RawConnection":
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True):
            await self.stream.aclose()

    async def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        for piece in pieces:
            await self.stream.send_all(piece)
            if pause:
                await trio.sleep(pause)

    async def read_to_end(self) -> bytes:
        with trio.fail_after(RESPONSE_S):
            while data := await self._receive():
                self._buffer += data
        data, self._buffer = self._buffer, b""
        return data

    async def response(self, *, head_only: bool = False) -> RawResponse:
        """Reads the next response."""
        with trio.fail_after(RESPONSE_S):
            head = await self._read_until(b"\r\n\r\n")
            first, *lines = head.decode("latin1").split("\r\n")[:-2]
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            status = int(first.split(" ")[1])
            if head_only or status in (204, 304) or status < 200:
                body = b""
            elif headers.get("transfer-encoding") == "chunked":
                body = await self._read_chunks()
            elif "content-length" in headers:
                body = await self.read_exactly(int(headers["content-length"]))
            else:
                body = await self.read_to_end()
            return RawResponse(status, headers, body)

    async def is_closed(self) -> bool:
        """Returns whether the server closes the connection without sending anything more."""
        with trio.fail_after(RESPONSE_S):
            return not self._buffer and not await self._receive()

    async def _read_chunks(self) -> bytes:
        body = b""
        while size := int(await self._read_until(b"\r\n"), 16):
            body += await self.read_exactly(size)
            assert await self.read_exactly(2) == b"\r\n"
        assert await self.read_exactly(2) == b"\r\n"
        return body

    async def _read_until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            self._buffer += await self._receive_some()
        head, _, self._buffer = self._buffer.partition(end)
        return head + end

    async def read_exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._buffer += await self._receive_some()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    async def _receive_some(self) -> bytes:
        data = await self._receive()
        assert data, f"the connection ended after {self._buffer!r}"
        return data

    async def _receive(self) -> bytes:
        """Returns b"" at the end of the stream."""
        try:
            return bytes(await self.stream.receive_some())
        except trio.BrokenResourceError:
            return b""
