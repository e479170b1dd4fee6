"""A request as the lane brings it: a body that is read when asked for, and nothing made that nobody may use."""

from collections.abc import Generator
from functools import cached_property
from typing import Any

import trio
from hypercorn.typing import ASGIReceiveCallable
from quart import Quart
from quart.wrappers.base import BaseRequestWebsocket
from quart_trio.wrappers import TrioRequest
from quart_trio.wrappers.request import TrioBody
from werkzeug.datastructures import Headers
from werkzeug.exceptions import RequestEntityTooLarge

from sso.web.client_connection import FAST_EXTENSION, FastExchange

MAX_NAMES = 256  # clients may make up names
_titles: dict[bytes, str] = {}


class AskedBody(TrioBody):
    """Quart's body for servers that are not lean: received when the handler asks for it, up to the route's limit."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self.asked = trio.Event()
        self._expected = expected_content_length or 0

    def limit(self, max_bytes: int) -> None:
        self._max_content_length = max_bytes
        if self._expected > max_bytes:
            self._must_raise = RequestEntityTooLarge()

    def __await__(self) -> Generator[Any, None, Any]:
        self.asked.set()
        return (yield from super().__await__())

    async def __anext__(self) -> bytes:
        self.asked.set()
        return await super().__anext__()

    def append(self, data: bytes) -> None:
        super().append(data)
        if self._must_raise is not None:
            self._data.clear()


class AskedRequest(TrioRequest):
    body_class = AskedBody


class FastBody:
    """The body of a request, read from the connection when asked for (as Quart's, which is filled by a task)."""

    __slots__ = ("_data", "_ended", "_most", "_receive", "_server", "_taken")

    def __init__(self, server: FastExchange, receive: ASGIReceiveCallable, most: int | None) -> None:
        self._server = server
        self._receive = receive
        self._data = b""
        self._ended = False
        self._most = float("inf") if most is None else most
        self._taken = server.declared if server.declared > self._most else 0

    def limit(self, max_bytes: int) -> None:
        """Sets the limit of the route; what was declared counts at once."""
        self._most = max_bytes
        self._taken = max(self._taken, self._server.declared if self._server.declared > max_bytes else 0)

    def buffered_body(self) -> bool:
        """Whether nothing has to be waited for."""
        if not self._ended and self._taken <= self._most and (data := self._server.buffered_body()) is not None:
            self._ended = True
            self._add(data)
        return self._ended

    def _add(self, data: bytes) -> None:
        self._taken += len(data)
        self._data = self._data + data if self._data else data

    async def _pull(self) -> None:
        self._judge()
        message: Any = await self._receive()
        self._ended = not message["more_body"]
        self._add(message["body"])
        self._judge()

    def _judge(self) -> None:
        if self._taken > self._most:
            raise RequestEntityTooLarge

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._all().__await__()

    async def _all(self) -> bytes:
        self._judge()
        pieces = [self._data]
        while not self._ended:
            self._data = b""
            await self._pull()
            pieces.append(self._data)
        self._data = b"".join(pieces)
        return self._data

    def __aiter__(self) -> "FastBody":
        return self

    async def __anext__(self) -> bytes:
        self._judge()
        while not self._data and not self._ended:
            await self._pull()
        if not self._data:
            raise StopAsyncIteration
        data, self._data = self._data, b""
        return data

    def clear(self) -> None:
        self._data = b""


class FastRequest(TrioRequest):
    def __init__(self, app: Quart, scope: Any, headers: Headers, receive: ASGIReceiveCallable) -> None:
        BaseRequestWebsocket.__init__(
            self,
            scope["method"],
            scope["scheme"],
            scope["path"],
            scope["query_string"],
            headers,
            scope["root_path"],
            scope["http_version"],
            scope,
        )
        config = app.config
        self.body_timeout = config["BODY_TIMEOUT"]
        self.body = FastBody(  # type: ignore[assignment]
            scope["extensions"][FAST_EXTENSION], receive, config["MAX_CONTENT_LENGTH"]
        )
        self._form = None
        self._files = None

    @cached_property
    def _cached_json(self) -> dict[bool, Any]:  # type: ignore[override]
        return {False: ..., True: ...}

    @cached_property
    def _parsing_lock(self) -> trio.Lock:  # type: ignore[override]
        return trio.Lock()

    async def send_push_promise(self, path: str) -> None:
        """There are none in HTTP/1."""

    async def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        body: FastBody = self.body  # type: ignore[assignment]
        if not cache and not as_text and not parse_form_data and body.buffered_body():
            data = await body  # it needs no time limit
            body.clear()
            return data
        return await super().get_data(cache, as_text, parse_form_data)


class FastHeaders(Headers):
    def get(self, key: str, default: Any = None, type: Any = None) -> Any:  # type: ignore[override]
        """The other way to say that there is none raises and catches an HTTP error, with all that belongs to one."""
        wanted = key.lower()
        for name, value in self._list:
            if name.lower() == wanted:
                return value if type is None else super().get(key, default, type)
        return default


def read_headers(scope: Any) -> Headers:
    headers = FastHeaders()
    # Not by `add`, which looks for line ends in what a parser has just split at them.
    pairs = headers._list
    pairs.append(("Remote-Addr", (scope["client"] or ("<local>",))[0]))
    pairs += [(_titles.get(name) or _title(name), value.decode("latin1")) for name, value in scope["headers"]]
    if scope["http_version"] < "1.1":
        headers.setdefault("Host", "")
    return headers


def _title(name: bytes) -> str:
    title = name.decode("latin1").title()
    if len(_titles) < MAX_NAMES:
        _titles[name] = title
    return title
