"""Quart without what nobody here uses: signals, sessions, host matching; and, where the server allows it, without a
nursery and two tasks for each request.

Everything left out is left out because there is nobody who would notice: there are no listeners, no teardown functions,
and hooks are the application's, not a blueprint's.
"""

from collections.abc import Awaitable, Callable, Generator
from functools import cached_property
from inspect import CO_COROUTINE
from typing import Any, Protocol

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart import Quart, Request, Response
from quart.ctx import AppContext, RequestContext
from quart.globals import _cv_app, _cv_request
from quart.sessions import NullSession
from quart.typing import ResponseTypes
from quart.wrappers.base import BaseRequestWebsocket
from quart.wrappers.response import DataBody
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers import TrioRequest
from werkzeug.datastructures import Headers
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.routing import MapAdapter

from sso.web.later import Later
from sso.web.wire import LEAN

NAMES_MOST = 256  # clients may make up names
_SESSION = NullSession()
_titles: dict[bytes, str] = {}
_raw_names: dict[str, bytes] = {}


class AtHand(Protocol):
    """What a server that has LEAN among its extensions puts there."""

    @property
    def declared(self) -> int:
        """The length of the body, as far as it was told."""

    def at_hand(self) -> bytes | None:
        """All of the body, if it has come already."""


class LeanBody:
    """The body of a request, read from the connection when asked for (as Quart's, which is filled by a task)."""

    __slots__ = ("_data", "_ended", "_most", "_receive", "_server", "_taken")

    def __init__(self, server: AtHand, receive: ASGIReceiveCallable, most: int | None) -> None:
        self._server = server
        self._receive = receive
        self._data = b""
        self._ended = False
        self._most = float("inf") if most is None else most
        self._taken = server.declared if server.declared > self._most else 0

    def at_hand(self) -> bool:
        """Whether nothing has to be waited for."""
        if not self._ended and self._taken <= self._most and (data := self._server.at_hand()) is not None:
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

    def __aiter__(self) -> "LeanBody":
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


class LeanRequest(TrioRequest):
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
        self.body = LeanBody(  # type: ignore[assignment]
            scope["extensions"][LEAN], receive, config["MAX_CONTENT_LENGTH"]
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
        body: LeanBody = self.body  # type: ignore[assignment]
        if not cache and not as_text and not parse_form_data and body.at_hand():
            data = await body  # it needs no time limit
            body.clear()
            return data
        return await super().get_data(cache, as_text, parse_form_data)


class LeanHTTPConnection(TrioASGIHTTPConnection):
    """In the connection's own task, if the server reads bodies when asked for and cancels when a client leaves."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if LEAN not in (self.scope.get("extensions") or {}):
            await super().__call__(receive, send)
            return
        response = await self.app.handle_request(LeanRequest(self.app, self.scope, self._headers(), receive))
        if isinstance(response, Later):
            waiting, finish = response.begin()
            del response, self.scope
            try:
                response = await waiting
            except Exception as error:
                response = finish(error)
            else:
                response = finish(response)
        body = response.response if isinstance(response, Response) else None
        if not isinstance(body, DataBody):
            await self._send_slowly(send, response)
            return
        start: Any = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": encoded(response.headers),
        }
        await send(start)
        data = body.data if body.end - body.begin == len(body.data) else body.data[body.begin : body.end]
        await send({"type": "http.response.body", "body": data, "more_body": False})

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        if isinstance(response, Later):
            response = await response.answered()
        await super()._send_response(send, response)

    async def _send_slowly(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        given = response.timeout if isinstance(response, Response) else ...
        timeout = self.app.config["RESPONSE_TIMEOUT"] if given is ... else given
        with trio.move_on_after(float("inf") if timeout is None else timeout):
            await self._send_response(send, response)

    def _headers(self) -> Headers:
        scope = self.scope
        headers = Headers()
        # Not by `add`, which looks for line ends in what a parser has just split at them.
        pairs = headers._list
        pairs.append(("Remote-Addr", (scope["client"] or ("<local>",))[0]))
        pairs += [(_titles.get(name) or _title(name), value.decode("latin1")) for name, value in scope["headers"]]
        if scope["http_version"] < "1.1":
            headers.setdefault("Host", "")
        return headers


def _title(name: bytes) -> str:
    title = name.decode("latin1").title()
    if len(_titles) < NAMES_MOST:
        _titles[name] = title
    return title


def encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(_raw_names.get(name) or _raw_name(name), value.encode()) for name, value in headers]


def _raw_name(name: str) -> bytes:
    raw = name.lower().encode()
    if len(_raw_names) < NAMES_MOST:
        _raw_names[name] = raw
    return raw


class LeanAppContext(AppContext):
    async def push(self) -> None:
        self._cv_tokens.append(_cv_app.set(self))

    async def pop(self, exc: BaseException | None = None) -> None:
        _cv_app.reset(self._cv_tokens.pop())


class LeanRequestContext(RequestContext):
    async def push(self) -> None:
        self.session = _SESSION
        await self._push_appctx(_cv_request.set(self))
        self.match_request()

    async def pop(self, exc: BaseException | None = None) -> None:
        token, app_context = self._cv_tokens.pop()
        _cv_request.reset(token)
        if app_context is not None:
            await app_context.pop(exc)


class LeanQuart(QuartTrio):
    asgi_http_class = LeanHTTPConnection

    def app_context(self) -> AppContext:
        return LeanAppContext(self)

    def request_context(self, request: Any) -> RequestContext:
        return LeanRequestContext(self, request)

    def create_url_adapter(self, request: BaseRequestWebsocket | None) -> MapAdapter | None:
        """No rule knows a host, and what a client calls us is never repeated."""
        if request is None:
            return None
        return MapAdapter(self.url_map, "", "/", "", request.scheme, request.path, request.method, "")

    def ensure_async(self, func: Callable[..., Any]) -> Callable[..., Any]:
        code = getattr(func, "__code__", None)
        return func if code is not None and code.co_flags & CO_COROUTINE else super().ensure_async(func)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:  # type: ignore[override]
        """No coroutine of its own: it would keep the scope for as long as the request waits."""
        if scope["type"] == "http":
            return self.asgi_http_class(self, scope)(receive, send)
        return self.asgi_app(scope, receive, send)

    async def handle_request(self, request: Request) -> ResponseTypes:
        """All of it in one frame: of those that wait there are thousands."""
        context = self.request_context(request)
        await context.push()
        try:
            try:
                result: Any = await self.preprocess_request(context)
                if result is None:
                    result = await self._view(request)
            except (Exception, BaseExceptionGroup) as error:
                result = await self.handle_user_exception(error)
            return await self.finalize_request(result, context)
        except BaseExceptionGroup as group:
            cancelled, _ = group.split(trio.Cancelled)
            if cancelled is not None:
                raise cancelled from None
            return await self.handle_exception(group)  # type: ignore[arg-type]
        except Exception as error:
            return await self.handle_exception(error)
        finally:
            await context.pop(None)

    def _view(self, request: Request) -> Awaitable[Any]:
        if request.routing_exception is not None:
            self.raise_routing_exception(request)
        rule = request.url_rule
        assert rule is not None
        if request.method == "OPTIONS" and rule.provide_automatic_options:
            return self.make_default_options_response()
        return self.ensure_async(self.view_functions[rule.endpoint])(**(request.view_args or {}))  # type: ignore[no-any-return]

    async def preprocess_request(self, request_context: RequestContext | None = None) -> Any:
        for function in self.before_request_funcs[None]:
            result = await self.ensure_async(function)()
            if result is not None:
                return result
        return None

    async def finalize_request(
        self, result: Any, request_context: RequestContext | None = None, from_error_handler: bool = False
    ) -> ResponseTypes:
        response = result if isinstance(result, self.response_class) else await self.make_response(result)
        for function in reversed(self.after_request_funcs[None]):
            response = await self.ensure_async(function)(response)
        return response
