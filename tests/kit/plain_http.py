"""A transport of httpx for plain HTTP/1.1, which needs a third of the processor time of the usual one.

Tests of the protocol itself use sockets (kit/raw_http.py); those of TLS, Unix sockets and proxies the usual transport.
"""

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx

_CHUNK = 65536
_WITHOUT_BODY = (204, 304)
_MAX_IDLE_S = 2.0  # servers close idle connections later (Node after 5 s), so never while a request is on its way


class PlainTransport(httpx.BaseTransport):
    """Keeps its connections open for later requests. Several threads may use it."""

    def __init__(self, local_address: str = "") -> None:
        self._local_address = local_address
        self._unused: list[tuple[tuple[str, int], _Connection]] = []
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        address = (request.url.host, request.url.port or 80)
        timeout = request.extensions.get("timeout", {}).get("read")
        connection = self._take(address) or self._open(address, timeout)
        try:
            connection.socket.settimeout(timeout)
            connection.send(request)
            status, headers, reason = connection.read_head()
            body = connection.body(request.method, status, headers)
        except BaseException as error:
            connection.socket.close()
            raise _translated(error, request) from error
        stream = _Body(self, address, connection, body, request)
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": reason}
        return httpx.Response(status, headers=headers, stream=stream, extensions=extensions)

    def close(self) -> None:
        with self._lock:
            unused, self._unused = self._unused, []
        for _, connection in unused:
            connection.socket.close()

    def give_back(self, address: tuple[str, int], connection: "_Connection") -> None:
        connection.idle_since = time.monotonic()
        with self._lock:
            self._unused.append((address, connection))

    def _take(self, address: tuple[str, int]) -> "_Connection | None":
        """Returns the connection that was used last, unless that is long ago or the server has closed it."""
        while True:
            with self._lock:
                index = next((i for i in reversed(range(len(self._unused))) if self._unused[i][0] == address), None)
                connection = None if index is None else self._unused.pop(index)[1]
            if connection is None or not (connection.is_old() or connection.has_input()):
                return connection
            connection.socket.close()

    def _open(self, address: tuple[str, int], timeout: float | None) -> "_Connection":
        source = (self._local_address, 0) if self._local_address else None
        try:
            opened = socket.create_connection(address, timeout, source)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Connection(opened)


class _Connection:
    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self.is_reusable = True
        self.idle_since = 0.0
        self._received = b""

    def is_old(self) -> bool:
        return time.monotonic() - self.idle_since > _MAX_IDLE_S

    def has_input(self) -> bool:
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))

    def send(self, request: httpx.Request) -> None:
        lines = [request.method.encode() + b" " + request.url.raw_path + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in request.headers.raw]
        head = b"\r\n".join([*lines, b"", b""])
        body = request.read()
        if request.headers.get("Transfer-Encoding") == "chunked":
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
        with suppress(BrokenPipeError, ConnectionResetError):  # the answer may say why
            self.socket.sendall(head + body)

    def read_head(self) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        while True:
            start, *lines = self._read_until(b"\r\n\r\n").split(b"\r\n")
            version, status, reason = (start + b" ").split(b" ", 2)
            if version == b"HTTP/1.0":
                self.is_reusable = False
            if int(status) >= 200 or int(status) == 101:
                fields = [line.partition(b":") for line in lines]
                return int(status), [(name, value.strip()) for name, _, value in fields], reason.rstrip()

    def body(self, method: str, status: int, headers: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
        fields = {name.lower(): value.lower() for name, value in headers}
        if fields.get(b"connection") == b"close":
            self.is_reusable = False
        if method == "HEAD" or status in _WITHOUT_BODY:
            return iter(())
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            return self._chunks()
        if b"content-length" in fields:
            return self._exactly(int(fields[b"content-length"]))
        self.is_reusable = False
        return self._until_the_end()

    def _exactly(self, length: int) -> Iterator[bytes]:
        while length > 0:
            data = self._received or self._receive()
            self._received = data[length:]
            length -= len(data[:length])
            yield data[: len(data) - len(self._received)]

    def _chunks(self) -> Iterator[bytes]:
        while length := int(self._read_until(b"\r\n").partition(b";")[0], 16):
            yield from self._exactly(length)
            self._read_until(b"\r\n")
        while self._read_until(b"\r\n"):
            pass

    def _until_the_end(self) -> Iterator[bytes]:
        received, self._received = self._received, b""
        yield received
        while data := self.socket.recv(_CHUNK):
            yield data

    def _read_until(self, end: bytes) -> bytes:
        while end not in self._received:
            self._received += self._receive()
        found, _, self._received = self._received.partition(end)
        return found

    def _receive(self) -> bytes:
        data = self.socket.recv(_CHUNK)
        if not data:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        return data


class _Body(httpx.SyncByteStream):
    def __init__(
        self,
        transport: PlainTransport,
        address: tuple[str, int],
        connection: _Connection,
        body: Iterator[bytes],
        request: httpx.Request,
    ) -> None:
        self._transport, self._address, self._connection = transport, address, connection
        self._body, self._request = body, request
        self._is_complete = self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except BaseException as error:
            raise _translated(error, self._request) from error
        self._is_complete = True

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_complete and self._connection.is_reusable:
            self._transport.give_back(self._address, self._connection)
        else:
            self._connection.socket.close()


def _translated(error: BaseException, request: httpx.Request) -> BaseException:
    """Returns the error that the usual transport raises."""
    if isinstance(error, TimeoutError):
        return httpx.ReadTimeout(str(error), request=request)
    if isinstance(error, OSError):
        return httpx.ReadError(str(error), request=request)
    return error
