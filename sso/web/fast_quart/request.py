"""Requests whose body is read when the handler asks for it, and whose rarely used attributes are made on demand."""

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
from werkzeug.datastructures.mixins import ImmutableHeadersMixin
from werkzeug.exceptions import RequestEntityTooLarge

from sso.web.client_connection import FAST_EXTENSION, FastExchange

MAX_CACHED_NAMES = 256  # clients may send any names
_names: dict[bytes, tuple[str, str]] = {}


class LazyBody(TrioBody):
    """Quart's body for servers without FastExchange: received when the handler reads it, up to the route's limit."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self.read_requested = trio.Event()
        self._expected = expected_content_length or 0

    def limit(self, max_bytes: int) -> None:
        """Sets the limit of the route, which may be higher or lower than the application's."""
        self._max_content_length = max_bytes
        self._must_raise = RequestEntityTooLarge() if self._expected > max_bytes else None

    def __await__(self) -> Generator[Any, None, Any]:
        self.read_requested.set()
        return (yield from super().__await__())

    async def __anext__(self) -> bytes:
        self.read_requested.set()
        return await super().__anext__()

    def append(self, data: bytes) -> None:
        super().append(data)
        if self._must_raise is not None:
            self._data.clear()


class LazyBodyRequest(TrioRequest):
    body_class = LazyBody


class FastBody:
    """Reads the body from the connection when the handler asks for it. Quart's own class needs a task for that."""

    __slots__ = ("_complete", "_data", "_declared", "_exchange", "_max_bytes", "_receive", "_size")

    def __init__(self, exchange: FastExchange, receive: ASGIReceiveCallable, max_bytes: int | None) -> None:
        self._exchange = exchange
        self._receive = receive
        self._data = b""
        self._complete = False
        self._max_bytes = float("inf") if max_bytes is None else max_bytes
        self._declared = exchange.declared_length
        self._size = 0

    def limit(self, max_bytes: int) -> None:
        """Sets the limit of the route. A declared length above the limit is rejected before anything is read."""
        self._max_bytes = max_bytes

    def is_buffered(self) -> bool:
        """Returns whether the whole body can be read without waiting."""
        if not self._complete and not self._is_too_large() and (data := self._exchange.buffered_body()) is not None:
            self._complete = True
            self._add(data)
        return self._complete

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        self._data = self._data + data if self._data else data

    async def _receive_piece(self) -> None:
        self._check_size()
        message: Any = await self._receive()
        self._complete = not message["more_body"]
        self._add(message["body"])
        self._check_size()

    def _check_size(self) -> None:
        if self._is_too_large():
            raise RequestEntityTooLarge

    def _is_too_large(self) -> bool:
        return max(self._size, self._declared) > self._max_bytes

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._read_all().__await__()

    async def _read_all(self) -> bytes:
        self._check_size()
        pieces = [self._data]
        while not self._complete:
            self._data = b""
            await self._receive_piece()
            pieces.append(self._data)
        self._data = b"".join(pieces)
        return self._data

    def __aiter__(self) -> "FastBody":
        return self

    async def __anext__(self) -> bytes:
        self._check_size()
        while not self._data and not self._complete:
            await self._receive_piece()
        if not self._data:
            raise StopAsyncIteration
        data, self._data = self._data, b""
        return data

    def clear(self) -> None:
        self._data = b""


class FastRequest(TrioRequest):
    """Omits Quart's own constructor, which makes a lock, a body and a parser that most requests never use."""

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
        """Does nothing: HTTP/1 has no push."""

    async def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        body: FastBody = self.body  # type: ignore[assignment]
        if not cache and not as_text and not parse_form_data and body.is_buffered():
            data = await body  # without waiting, so it needs no time limit
            body.clear()
            return data
        return await super().get_data(cache, as_text, parse_form_data)


class FastHeaders(ImmutableHeadersMixin, Headers):  # type: ignore[misc]
    """The headers of a request, which never change. A header is found in a dictionary; Werkzeug searches a list."""

    _first: dict[str, str] | None = None  # the first value of each header, by its name in lower case
    _has_repeated = False  # some name occurs twice

    def get(self, key: str, default: Any = None, type: Any = None) -> Any:  # type: ignore[override]
        """Returns the default for a missing header at once; Werkzeug would raise and catch an HTTP error."""
        first, lower = self._first, key.lower()
        if first is None:
            value = next((value for name, value in self._list if name.lower() == lower), default)
        else:
            value = first.get(lower, default)
        return value if type is None else super().get(key, default, type)

    def getlist(self, key: str, type: Any = None) -> list[Any]:
        first = self._first
        if first is None or self._has_repeated or type is not None:
            return super().getlist(key, type)
        value = first.get(key.lower())
        return [] if value is None else [value]


def read_headers(scope: Any, *, indexed: bool = True) -> Headers:
    """Returns the headers of a request; ``indexed``: with a dictionary, which takes memory as long as they exist."""
    headers = FastHeaders()
    # Not `headers.add`, which searches for line breaks: the parser has already split the headers at them.
    pairs = headers._list
    first: dict[str, str] = {}
    address = (scope["client"] or ("<local>",))[0]
    pairs.append(("Remote-Addr", address))
    first["remote-addr"] = address
    for raw_name, raw_value in scope["headers"]:
        title, lower = _names.get(raw_name) or _name(raw_name)
        value = raw_value.decode("latin1")
        pairs.append((title, value))
        if lower in first:
            headers._has_repeated = True
        else:
            first[lower] = value
    if scope["http_version"] < "1.1" and "host" not in first:
        pairs.append(("Host", ""))
        first["host"] = ""
    if indexed:
        headers._first = first
    return headers


def _name(raw: bytes) -> tuple[str, str]:
    """Returns the name of a header with capitals, and in lower case."""
    name = raw.decode("latin1")
    spellings = name.title(), name.lower()
    if len(_names) < MAX_CACHED_NAMES:
        _names[raw] = spellings
    return spellings
