"""One request and its answer, as the ASGI application sees them."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import structlog
import trio

from sso.serve.http1.body import request_body
from sso.serve.http1.head import RequestHead
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.response import CONTINUE, InvalidResponse
from sso.serve.http1.response_writer import ResponseWriter
from sso.web.client_connection import CONNECTION_EXTENSION, FAST_EXTENSION

if TYPE_CHECKING:
    from sso.serve.http1.connection import Connection

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_log = structlog.get_logger()


class HttpExchange(ResponseWriter):
    """It is also the `Wire` of its handler."""

    __slots__ = ("_bad", "_body", "_body_due", "_early", "_expects", "_length", "_sent")

    def __init__(self, connection: "Connection", head: RequestHead) -> None:
        super().__init__(connection, head)
        self._length = head.length
        self._body = request_body(head.length, connection.lane.limits) if head.length else None
        self._body_due = 0.0
        self._bad: RequestRejected | None = None
        self._early = b""  # taken before it was asked for
        self._expects = head.expects_continue
        self._sent = False  # the application has had the end of the body

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
            "server": connection.server,
            "extensions": {CONNECTION_EXTENSION: self, FAST_EXTENSION: self},
        }

    async def run(self, answering: Awaitable[None]) -> bool:
        """Whether the connection may go on."""
        try:
            await answering
            self._judge()
        except Exception as error:
            _log.error("request failed", error=type(error).__name__, exc_info=not isinstance(error, InvalidResponse))
            if not self._connection.begun:
                self._connection.refuse(RequestRejected(500, "internal error"))
            return False
        finally:
            if self.on_undelivered is not None and not self.written:
                await self._take_back(self.on_undelivered)
        return self._keep

    def _judge(self) -> None:
        if not self.finished:
            raise InvalidResponse("the application has not answered to the end")

    async def _take_back(self, undo: Callable[[], Awaitable[None]]) -> None:
        with trio.move_on_after(self._connection.lane.limits.undo_s, shield=True):
            try:
                await undo()
            except Exception:
                _log.exception("an answer that was not written could not be undone")

    def cancel_on_disconnect(self) -> AbstractContextManager[None]:
        return self._connection.cancel_on_disconnect()

    # What comes

    @property
    def declared(self) -> int:
        """The length of the body, as far as it was told."""
        return max(0, self._length)

    def buffered_body(self) -> bytes | None:
        """All of the body, if it is here already."""
        if self._body is not None:
            try:
                self._early += self._take()
            except RequestRejected:
                return None  # and told where it is waited for
            if self._body is not None:
                return None
        data, self._early, self._sent = self._early, b"", True
        return data

    async def receive(self) -> dict[str, Any]:
        if self._sent:
            with self.cancel_on_disconnect():  # the end of a connection is told by cancelling
                await trio.sleep_forever()
        data = b"" if self._body is None else await self._piece()
        self._sent = self._body is None
        return {"type": "http.request", "body": data, "more_body": not self._sent}

    async def _piece(self) -> bytes:
        connection = self._connection
        data, self._early = self._early, b""
        while not data:
            try:
                data = self._take()
            except RequestRejected as refused:
                connection.refuse(refused)
                await connection.ended()
            if data or self._body is None:
                break
            if self._expects:
                self._expects = False
                await connection.write(CONTINUE)
            if not self._body_due:
                self._body_due = connection.lane.clock.now + connection.lane.limits.body_s
            await connection.read_more(self._body_due)
        if self._body is not None:
            await trio.lowlevel.checkpoint()  # the next piece may be here already
        return data

    def _take(self) -> bytes:
        assert self._body is not None
        connection = self._connection
        if self._bad is not None:
            raise self._bad
        try:
            data, connection.rest = self._body.take(connection.rest)
        except RequestRejected as refused:
            self._bad = refused
            raise
        if self._body.done:
            self._body = None
        return data

    def _all_read(self) -> bool:
        """Whether the next request can be found. What is here of a body that nobody wants is let go."""
        if self._body is not None and not self._expects:
            with suppress(RequestRejected):
                self._take()
        if self._body is not None:
            self._connection.unread = True
        return self._body is None
