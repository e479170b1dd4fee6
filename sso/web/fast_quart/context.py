"""Quart's contexts without signals, sessions and teardown; a request has a fast path to most routes."""

from functools import cached_property
from typing import Protocol

from quart import Quart, Request
from quart.ctx import AppContext, RequestContext, WebsocketContext
from quart.globals import _cv_app, _cv_request, _cv_websocket
from quart.sessions import NullSession
from quart.wrappers.base import BaseRequestWebsocket
from werkzeug.routing import Map, MapAdapter, Rule

_SESSION = NullSession()

FixedRules = dict[tuple[str, str], Rule]


class HasFixedRules(Protocol):
    """The part of the application (``FastQuart``) that a request context uses."""

    @property
    def fixed_rules(self) -> FixedRules: ...

    def create_url_adapter(self, request: BaseRequestWebsocket | None) -> MapAdapter | None: ...


def fixed_rules(url_map: Map) -> FixedRules:
    """Returns the rules without variable parts, by method and path: a dictionary saves the 15 us of the router.

    The router prefers these rules as well, and the first of two equal ones. All other paths are left to it.
    """
    rules: FixedRules = {}
    for rule in url_map.iter_rules():
        if not (rule.arguments or rule.websocket or rule.defaults or rule.redirect_to or rule.build_only):
            for method in rule.methods or ():
                rules.setdefault((method, rule.rule), rule)
    return rules


class FastAppContext(AppContext):
    async def push(self) -> None:
        self._cv_tokens.append(_cv_app.set(self))

    async def pop(self, exc: BaseException | None = None) -> None:
        _cv_app.reset(self._cv_tokens.pop())


class FastRequestContext(RequestContext):
    app: HasFixedRules  # type: ignore[assignment]

    def __init__(self, app: Quart, request: Request) -> None:
        """Sets what Quart's own constructors set, but for the router, which most requests never use."""
        self.app = app  # type: ignore[assignment]
        self.request_websocket = request
        request.routing_exception = None
        request.json_module = app.json
        self.session = _SESSION
        self.preserved = False
        self._cv_tokens = []
        self.flashes = None
        self._after_request_functions = []

    @cached_property
    def url_adapter(self) -> MapAdapter | None:  # type: ignore[override]
        return self.app.create_url_adapter(self.request_websocket)

    async def push(self) -> None:
        await self._push_appctx(_cv_request.set(self))
        self.match_request()

    def match_request(self) -> None:
        request = self.request_websocket
        rule = self.app.fixed_rules.get((request.method, request.path))
        if rule is None:
            super().match_request()
        else:
            request.url_rule = rule  # type: ignore[assignment]
            request.view_args = {}

    async def pop(self, exc: BaseException | None = None) -> None:
        token, app_context = self._cv_tokens.pop()
        _cv_request.reset(token)
        if app_context is not None:
            await app_context.pop(exc)


class FastWebsocketContext(WebsocketContext):
    async def push(self) -> None:
        self.session = _SESSION
        await self._push_appctx(_cv_websocket.set(self))
        self.match_request()

    async def pop(self, exc: BaseException | None = None) -> None:
        token, app_context = self._cv_tokens.pop()
        _cv_websocket.reset(token)
        if app_context is not None:
            await app_context.pop(exc)
