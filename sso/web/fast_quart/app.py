"""Quart without signals, sessions and host matching.

On a server with FastExchange and FastWebSocket, a request also needs no nursery and no tasks of its own. The service
uses none of the omitted parts: there are no signal receivers and no teardown functions, and all hooks belong to the
application rather than to a blueprint and are coroutine functions.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from inspect import CO_COROUTINE
from typing import Any, NoReturn

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart import Quart, Request, Response, Websocket
from quart.ctx import AppContext, RequestContext, WebsocketContext
from quart.routing import QuartRule
from quart.templating import Environment
from quart.typing import ResponseTypes
from quart.wrappers.base import BaseRequestWebsocket
from quart.wrappers.response import DataBody
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from werkzeug.datastructures import Headers
from werkzeug.routing import MapAdapter

from sso.web.client_connection import FAST_EXTENSION, FastExchange, RawHeaders
from sso.web.deferred_response import DeferredResponse
from sso.web.fast_quart.context import (
    FastAppContext,
    FastRequestContext,
    FastWebsocketContext,
    FixedRules,
    fixed_rules,
)
from sso.web.fast_quart.request import FastRequest, LazyBodyRequest, read_headers
from sso.web.fast_quart.websocket import FastWebSocketConnection
from sso.web.request_tracing import started_span

MAX_CACHED_NAMES = 256
_raw_names: dict[str, bytes] = {}


class MatchingRule(QuartRule):
    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., Any]:
        """Called twice for each rule. Compiling the builders would take half of the time that the routes take."""
        return _refuse_to_build


def _refuse_to_build(rule: MatchingRule, *_: object, **__: object) -> NoReturn:
    raise NotImplementedError(f"no URL is built for {rule.rule}")


class FastHTTPConnection(TrioASGIHTTPConnection):
    """Used with servers that offer no FastExchange, and for responses that are streamed."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        try:
            await super().__call__(receive, send)
        finally:
            if span := started_span(self.scope):
                span.abandoned()  # has no effect if the request was answered

    async def handle_messages(  # type: ignore[override]
        self, nursery: trio.Nursery, request: Request, receive: ASGIReceiveCallable
    ) -> None:
        """Receives a body only when the handler reads it."""
        if any(name in (b"content-length", b"transfer-encoding") for name, _ in self.scope["headers"]):
            body: Any = request.body
            await body.read_requested.wait()
        await super().handle_messages(nursery, request, receive)

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        if isinstance(response, DeferredResponse):
            response = await response.wait()
        await super()._send_response(send, response)


def encode_headers(headers: Headers) -> RawHeaders:
    return [(_raw_names.get(name) or _raw_name(name), value.encode()) for name, value in headers]


def _raw_name(name: str) -> bytes:
    raw = name.lower().encode()
    if len(_raw_names) < MAX_CACHED_NAMES:
        _raw_names[name] = raw
    return raw


class FastTemplates(Environment):
    """Synchronous templates: none of ours awaits anything, and coroutines take twice as long."""

    def __init__(self, app: Quart, **options: Any) -> None:
        super().__init__(app, **options)
        self.is_async = False


class FastQuart(QuartTrio):
    asgi_http_class = FastHTTPConnection
    request_class = LazyBodyRequest
    url_rule_class = MatchingRule  # type: ignore[assignment]
    jinja_environment = FastTemplates  # type: ignore[assignment]

    @cached_property
    def fixed_rules(self) -> FixedRules:
        """Must not be used before all routes are registered: the first use fixes the result."""
        return fixed_rules(self.url_map)

    def app_context(self) -> AppContext:
        return FastAppContext(self)

    def request_context(self, request: Any) -> RequestContext:
        return FastRequestContext(self, request)

    def websocket_context(self, websocket: Websocket) -> WebsocketContext:
        return FastWebsocketContext(self, websocket)

    def create_url_adapter(self, request: BaseRequestWebsocket | None) -> MapAdapter | None:
        """Ignores the Host header: no rule matches on it, and it must not appear in redirects."""
        if request is None:
            return None
        return MapAdapter(self.url_map, "", "/", "", request.scheme, request.path, request.method, "")

    def ensure_async(self, func: Callable[..., Any]) -> Callable[..., Any]:
        code = getattr(func, "__code__", None)
        return func if code is not None and code.co_flags & CO_COROUTINE else super().ensure_async(func)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:  # type: ignore[override]
        """Not a coroutine function: its frame would keep the scope in memory while the request waits."""
        exchange = (scope.get("extensions") or {}).get(FAST_EXTENSION)
        if exchange is None:
            return self.asgi_app(scope, receive, send)
        if scope["type"] == "websocket":
            return FastWebSocketConnection(self, scope, receive, send).serve()
        return self._serve_fast(exchange, scope, receive)

    async def _serve_fast(self, exchange: FastExchange, scope: Any, receive: Any) -> None:
        """Handles the request in the task of its connection, without the tasks that Quart starts otherwise."""
        response = await self.handle_request(FastRequest(self, scope, read_headers(scope), receive))
        if isinstance(response, DeferredResponse):
            waiting, finish = response.start()
            del response, scope, receive  # thousands of requests may wait here
            try:
                response = await waiting
            except Exception as error:
                response = finish(error)
            else:
                response = finish(response)
        body = response.response if isinstance(response, Response) else None
        if isinstance(body, DataBody):
            data = body.data if body.end - body.begin == len(body.data) else body.data[body.begin : body.end]
            await exchange.respond(response.status_code, encode_headers(response.headers), data)
        else:
            await self._stream(exchange, response)

    async def _stream(self, exchange: FastExchange, response: ResponseTypes) -> None:
        timeout = response.timeout if isinstance(response, Response) else ...
        if timeout is ...:
            timeout = self.config["RESPONSE_TIMEOUT"]
        scope: Any = {}  # `_send_response` does not use it
        with trio.move_on_after(float("inf") if timeout is None else timeout):
            await self.asgi_http_class(self, scope)._send_response(exchange.send, response)

    async def handle_request(self, request: Request) -> ResponseTypes:
        """Combines several methods of Quart in one frame: thousands of requests may wait in it."""
        context = self.request_context(request)
        await context.push()
        try:
            try:
                result: Any = None
                for function in self.before_request_funcs[None]:
                    result = result or await function()  # type: ignore[misc]
                if result is None:
                    result = await self._call_view(request)
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

    async def handle_websocket(self, websocket: Websocket) -> Any:
        """Combines several methods of Quart in one frame: there may be thousands of WebSockets."""
        context = self.websocket_context(websocket)
        await context.push()
        try:
            try:
                result = await self.preprocess_websocket(context)
                if result is None:
                    result = await self._call_view(websocket)
            except (Exception, BaseExceptionGroup) as error:
                result = await self.handle_user_exception(error)
            response = None if result is None else await self.make_response(result)
            for function in reversed(self.after_websocket_funcs[None]):
                response = await self.ensure_async(function)(response)
        except BaseExceptionGroup as group:
            cancelled, _ = group.split(trio.Cancelled)
            if cancelled is not None:
                raise cancelled from None
            return await self.handle_websocket_exception(group)  # type: ignore[arg-type]
        except Exception as error:
            return await self.handle_websocket_exception(error)
        else:
            return response
        finally:
            await context.pop(None)

    async def preprocess_websocket(self, websocket_context: WebsocketContext | None = None) -> Any:
        for function in self.before_websocket_funcs[None]:
            result = await self.ensure_async(function)()
            if result is not None:
                return result
        return None

    def _call_view(self, request: Request | Websocket) -> Awaitable[Any]:
        if request.routing_exception is not None:
            self.raise_routing_exception(request)
        rule = request.url_rule
        assert rule is not None
        if request.method == "OPTIONS" and rule.provide_automatic_options:
            return self.make_default_options_response()
        return self.ensure_async(self.view_functions[rule.endpoint])(**(request.view_args or {}))  # type: ignore[no-any-return]

    async def finalize_request(
        self, result: Any, request_context: RequestContext | None = None, from_error_handler: bool = False
    ) -> ResponseTypes:
        response = result if isinstance(result, Response) else await self.make_response(result)
        for function in reversed(self.after_request_funcs[None]):
            response = await function(response)
        return response
