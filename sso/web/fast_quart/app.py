"""Quart without what nobody here uses: signals, sessions, host matching; and, where the server allows it, without a
nursery and two tasks for each request.

Everything left out is left out because there is nobody who would notice: there are no listeners, no teardown functions,
and hooks are the application's, not a blueprint's.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from inspect import CO_COROUTINE
from typing import Any

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart import Quart, Request, Response
from quart.ctx import AppContext, RequestContext
from quart.templating import Environment
from quart.typing import ResponseTypes
from quart.wrappers.base import BaseRequestWebsocket
from quart.wrappers.response import DataBody
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from werkzeug.datastructures import Headers
from werkzeug.routing import MapAdapter

from sso.web.client_connection import FAST_EXTENSION, FastExchange, RawHeaders
from sso.web.deferred import DeferredResponse
from sso.web.fast_quart.context import FastAppContext, FastRequestContext, PlainRules, plain_rules
from sso.web.fast_quart.request import AskedRequest, FastRequest, read_headers

MAX_NAMES = 256
_raw_names: dict[str, bytes] = {}


class FastHTTPConnection(TrioASGIHTTPConnection):
    """For servers that are not lean, and for answers that are streamed."""

    async def handle_messages(  # type: ignore[override]
        self, nursery: trio.Nursery, request: Request, receive: ASGIReceiveCallable
    ) -> None:
        """Receives no body that no handler reads."""
        if any(name in (b"content-length", b"transfer-encoding") for name, _ in self.scope["headers"]):
            body: Any = request.body
            await body.asked.wait()
        await super().handle_messages(nursery, request, receive)

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        if isinstance(response, DeferredResponse):
            response = await response.answered()
        await super()._send_response(send, response)


def encoded(headers: Headers) -> RawHeaders:
    return [(_raw_names.get(name) or _raw_name(name), value.encode()) for name, value in headers]


def _raw_name(name: str) -> bytes:
    raw = name.lower().encode()
    if len(_raw_names) < MAX_NAMES:
        _raw_names[name] = raw
    return raw


class FastTemplates(Environment):
    """Templates that await nothing: as coroutines they take twice as long."""

    def __init__(self, app: Quart, **options: Any) -> None:
        super().__init__(app, **options)
        self.is_async = False


class FastQuart(QuartTrio):
    asgi_http_class = FastHTTPConnection
    request_class = AskedRequest
    jinja_environment = FastTemplates  # type: ignore[assignment]

    @cached_property
    def plain_rules(self) -> PlainRules:
        """To be asked for when all routes are there."""
        return plain_rules(self.url_map)

    def app_context(self) -> AppContext:
        return FastAppContext(self)

    def request_context(self, request: Any) -> RequestContext:
        return FastRequestContext(self, request)

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
        lean = (scope.get("extensions") or {}).get(FAST_EXTENSION) if scope["type"] == "http" else None
        return self._answer(lean, scope, receive) if lean else self.asgi_app(scope, receive, send)

    async def _answer(self, server: FastExchange, scope: Any, receive: Any) -> None:
        """In the connection's own task: the server reads bodies when asked for, and cancels when a client leaves."""
        response = await self.handle_request(FastRequest(self, scope, read_headers(scope), receive))
        if isinstance(response, DeferredResponse):
            waiting, finish = response.begin()
            del response, scope, receive
            try:
                response = await waiting
            except Exception as error:
                response = finish(error)
            else:
                response = finish(response)
        body = response.response if isinstance(response, Response) else None
        if isinstance(body, DataBody):
            data = body.data if body.end - body.begin == len(body.data) else body.data[body.begin : body.end]
            await server.answer(response.status_code, encoded(response.headers), data)
        else:
            await self._stream(server, response)

    async def _stream(self, server: FastExchange, response: ResponseTypes) -> None:
        given = response.timeout if isinstance(response, Response) else ...
        timeout = self.config["RESPONSE_TIMEOUT"] if given is ... else given
        scope: Any = {}  # not asked for by what sends
        with trio.move_on_after(float("inf") if timeout is None else timeout):
            await self.asgi_http_class(self, scope)._send_response(server.send, response)

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
