"""One request and its answer, as the ASGI application sees them."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import structlog
import trio

from sso.serve.lane.answer import (
    CHUNKED,
    CLOSE,
    CONTINUE,
    KEEP,
    LAST_CHUNK,
    AnswerHead,
    BadAnswer,
    answer_head,
    chunk,
    has_body,
)
from sso.serve.lane.body import body_of
from sso.serve.lane.head import Head
from sso.serve.lane.refused import Refused
from sso.serve.lane.watch import has_left
from sso.web.wire import KEY, LEAN

if TYPE_CHECKING:
    from sso.serve.lane.connection import Connection

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_log = structlog.get_logger()


class Exchange:
    """It is also the `Wire` of its handler."""

    __slots__ = (
        "_asked", "_bad", "_body", "_body_due", "_chunked", "_connection", "_early", "_expects", "_head", "_keep",
        "_left", "_sent", "_status", "finished", "undo",
    )  # fmt: skip

    def __init__(self, connection: "Connection", head: Head) -> None:
        self._connection = connection
        self._asked = head
        self._body = body_of(head.length, connection.lane.limits) if head.length else None
        self._body_due = 0.0
        self._bad: Refused | None = None
        self._early = b""  # taken before it was asked for
        self._expects = head.expects_continue
        self._head: AnswerHead | None = None
        self._status = 0
        self._keep = False
        self._chunked = False
        self._left: int | None = None  # of the length that the answer has announced
        self._sent = False  # the application has had the end of the body
        self.finished = False
        self.undo: Callable[[], Awaitable[None]] | None = None

    def scope(self) -> dict[str, Any]:
        head, connection = self._asked, self._connection
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
            "state": {},
            "extensions": {KEY: self, LEAN: self},
        }

    async def run(self) -> bool:
        """Whether the connection may go on."""
        try:
            await self._connection.lane.app(self.scope(), self.receive, self.send)
            self._judge()
        except Exception as error:
            _log.error("request failed", error=type(error).__name__, exc_info=not isinstance(error, BadAnswer))
            if not self._connection.begun:
                self._connection.refuse(Refused(500, "internal error"))
            return False
        finally:
            if self.undo is not None and not self.finished:
                await self._take_back(self.undo)
        return self._keep

    def _judge(self) -> None:
        if not self.finished:
            raise BadAnswer("the application has not answered to the end")

    async def _take_back(self, undo: Callable[[], Awaitable[None]]) -> None:
        with trio.move_on_after(self._connection.lane.limits.undo_s, shield=True):
            try:
                await undo()
            except Exception:
                _log.exception("an answer that was not written could not be undone")

    def watched(self) -> AbstractContextManager[None]:
        return self._connection.watched()

    # What comes

    @property
    def declared(self) -> int:
        """The length of the body, as far as it was told."""
        return max(0, self._asked.length)

    def at_hand(self) -> bytes | None:
        """All of the body, if it is here already."""
        if self._body is not None:
            try:
                self._early += self._take()
            except Refused:
                return None  # and told where it is waited for
            if self._body is not None:
                return None
        data, self._early, self._sent = self._early, b"", True
        return data

    async def receive(self) -> dict[str, Any]:
        if self._sent:
            with self.watched():  # the end of a connection is told by cancelling
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
            except Refused as refused:
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
        return data

    def _take(self) -> bytes:
        assert self._body is not None
        connection = self._connection
        if self._bad is not None:
            raise self._bad
        try:
            data, connection.rest = self._body.take(connection.rest)
        except Refused as refused:
            self._bad = refused
            raise
        if self._body.done:
            self._body = None
        return data

    # What goes

    async def send(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "http.response.body" if self._head is not None and not self.finished:
                data = message.get("body", b"")
                if message.get("more_body"):
                    await self._stream(data)
                else:
                    await self._finish(data)
            case "http.response.start" if self._head is None:
                self._status = message["status"]
                self._head = answer_head(self._status, message.get("headers", ()))
            case kind:
                raise BadAnswer(f"{kind} is not expected now")

    async def _finish(self, data: bytes) -> None:
        if self._connection.begun:
            await self._write(self._framed(data) + (LAST_CHUNK if self._chunked else b""))
        else:
            await self._write(self._begun(data, len(data)) + self._framed(data))
        if self._left:
            raise BadAnswer("the answer is shorter than it says")
        self.finished = True

    async def _stream(self, data: bytes) -> None:
        begin = b"" if self._connection.begun else self._begun(data, None)
        await self._write(begin + self._framed(data))

    def _begun(self, data: bytes, whole: int | None) -> bytes:
        """The head, now that it is known whether the answer is whole: if so, its length."""
        head, asked = self._head, self._asked
        assert head is not None
        body = has_body(asked.method, self._status)
        length = head.length
        lines = [head.lines]
        self._keep = asked.keep_alive and not head.close and not self._connection.lane.draining and self._all_read()
        if body and length is None:
            if whole is not None:
                length = whole
                lines.append(b"content-length: %d\r\n" % whole)
            elif asked.version == "1.1":
                self._chunked = True
                lines.append(CHUNKED)
            else:
                self._keep = False  # its end is the end of the connection
        if body and whole is not None and length != whole:
            raise BadAnswer("the answer is not as long as it says")
        self._left = length if body else 0
        if not self._keep:
            lines.append(CLOSE)
        elif asked.version == "1.0":
            lines.append(KEEP)
        lines += (self._connection.lane.clock.date, b"\r\n")
        return b"".join(lines)

    def _framed(self, data: bytes) -> bytes:
        if self._chunked:
            return chunk(data) if data else b""
        if self._left is None:
            return data
        if not has_body(self._asked.method, self._status):
            return b""
        self._left -= len(data)
        if self._left < 0:
            raise BadAnswer("the answer is longer than it says")
        return data

    def _all_read(self) -> bool:
        """Whether the next request can be found. What is here of a body that nobody wants is let go."""
        if self._body is not None and not self._expects:
            with suppress(Refused):
                self._take()
        if self._body is not None:
            self._connection.unread = True
        return self._body is None

    async def _write(self, data: bytes) -> None:
        connection = self._connection
        if self.undo is not None and has_left(connection.sock):
            await connection.ended()
        connection.begun = True
        if data:
            await connection.write(data)
