"""One request and its response: the ASGI scope, ``receive`` and ``send`` that the application gets."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import Any
from urllib.parse import unquote

import structlog
import trio

from sso.serve.acknowledgement import ResponseBytes
from sso.serve.http1.body import request_body
from sso.serve.http1.connection_interface import ConnectionInterface
from sso.serve.http1.head import RequestHead
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import CONTINUE, InvalidResponse
from sso.serve.http1.response_writer import ResponseWriter
from sso.web.client_connection import CONNECTION_EXTENSION, FAST_EXTENSION

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_log = structlog.get_logger()


class HttpExchange(ResponseWriter):
    """Also implements ``ClientConnection`` and ``FastExchange`` of sso.web.client_connection.

    It inherits the response writer rather than owning one, to save an object for each of thousands of held requests.
    """

    __slots__ = ("_body", "_body_deadline", "_body_received", "_content_length", "_expects_continue", "_prefetched",
        "_rejection")  # fmt: skip

    def __init__(self, connection: ConnectionInterface, head: RequestHead) -> None:
        super().__init__(connection, head)
        self._content_length = head.length
        self._body = request_body(head.length, connection.context.limits) if head.length else None
        self._body_deadline = 0.0
        self._rejection: RequestRejected | None = None
        self._prefetched = b""  # decoded by `buffered_body`, and not yet passed to the application
        self._expects_continue = head.expects_continue
        self._body_received = False  # the application has got the end of the body

    def scope(self, head: RequestHead) -> dict[str, Any]:
        connection = self._connection
        path = head.path.decode("ascii")
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": head.version,
            "method": head.method,
            "scheme": "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": head.path,
            "query_string": head.query,
            "root_path": "",
            "headers": head.headers,
            "client": connection.client,
            "server": connection.local_address,
            "extensions": {CONNECTION_EXTENSION: self, FAST_EXTENSION: self},
        }

    async def run(self, application: Awaitable[None]) -> bool:
        """Awaits the application's coroutine. Returns whether another request may follow on the connection."""
        try:
            await application
            self._check_finished()
        except Exception as error:
            traceback = not isinstance(error, InvalidResponse)
            _log.error("http.application_failed", error=type(error).__name__, exc_info=traceback)
            if not self._connection.response_started:
                self._connection.reject(RequestRejected(500, "internal error"))
            return False
        finally:
            if self.on_response_end is not None:
                await self._call_on_response_end(self.on_response_end)
        return self._keep_alive

    def _check_finished(self) -> None:
        if not self.finished:
            raise InvalidResponse("the application returned without finishing its response")

    async def _call_on_response_end(self, callback: Callable[[bool], Awaitable[None]]) -> None:
        with trio.CancelScope(shield=True):
            delivered = self.delivered and await self._are_bytes_acknowledged()
        with trio.move_on_after(self._connection.context.limits.on_response_end_s, shield=True):
            try:
                await callback(delivered)
            except Exception:
                _log.exception("http.on_response_end_failed")

    async def _are_bytes_acknowledged(self) -> bool:
        written = self._bytes or ResponseBytes(self._connection.sock)  # the callback was set after the first byte
        return await written.are_acknowledged()

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return self._connection.cancel_on_disconnect()

    @property
    def declared_length(self) -> int:
        """The content length of the request, or 0 if its body is chunked."""
        return max(0, self._content_length)

    def buffered_body(self) -> bytes | None:
        """Returns the whole body if all of it was received, else None."""
        if self._body is not None:
            try:
                self._prefetched += self._decode()
            except RequestRejected:
                return None  # `receive` reports it
            if self._body is not None:
                return None
        data, self._prefetched, self._body_received = self._prefetched, b"", True
        return data

    async def receive(self) -> dict[str, Any]:
        if self._body_received:
            with self.cancel_on_disconnect():  # a disconnect cancels the application; it gets no message
                await trio.sleep_forever()
        data = b"" if self._body is None else await self._receive_piece()
        self._body_received = self._body is None
        return {"type": "http.request", "body": data, "more_body": not self._body_received}

    async def _receive_piece(self) -> bytes:
        connection, context = self._connection, self._connection.context
        data, self._prefetched = self._prefetched, b""
        while not data:
            try:
                data = self._decode()
            except RequestRejected as rejection:
                connection.reject(rejection)
                await connection.abort()
            if data or self._body is None:
                break
            if self._expects_continue:
                self._expects_continue = False
                await connection.write(CONTINUE)
            if not self._body_deadline:
                self._body_deadline = context.clock.now + context.limits.body_s
            await connection.read_more(self._body_deadline)
        if self._body is not None:
            await trio.lowlevel.checkpoint()  # the next piece may be in the buffer already
        return data

    def _decode(self) -> bytes:
        """Decodes buffered bytes of the body, and forgets the decoder at the end of the body."""
        assert self._body is not None
        connection = self._connection
        if self._rejection is not None:
            raise self._rejection
        try:
            data, connection.buffer = self._body.feed(connection.buffer)
        except RequestRejected as rejection:
            self._rejection = rejection
            raise
        if self._body.done:
            self._body = None
        return data

    def _request_is_read(self) -> bool:
        """Discards buffered bytes of a body that the application did not read."""
        if self._body is not None and not self._expects_continue:
            with suppress(RequestRejected):
                self._decode()
        if self._body is not None:
            self._connection.has_unread_body = True
        return self._body is None
