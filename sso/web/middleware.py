"""Middleware: the checks before every request, and the headers, log line and error rendering of every response."""

import time
from collections.abc import Mapping

import structlog
from quart import Request, Response, Websocket, g, has_request_context
from quart.globals import _cv_app
from quart.typing import ResponseTypes
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from sso.core.errors import ApiError
from sso.core.ids import record_id
from sso.log import current_request_id
from sso.web.access_log import AccessLog
from sso.web.cross_origin import CrossOriginAccess, add_headers
from sso.web.deferred_response import DeferredResponse
from sso.web.error_format import ErrorFormat, error_format_for
from sso.web.error_page import error_page
from sso.web.error_response import kept_headers, render_error, to_error_response
from sso.web.forwarding_monitor import ForwardingMonitor
from sso.web.request import current_request
from sso.web.request_rules import RequestRules, check_path
from sso.web.request_tracing import started_span
from sso.web.security_headers import SecurityHeaders

HELD_SUFFIX = "?wait"
log = structlog.get_logger()


class ResponseFinisher:
    """Completes the response to one request, now or, for a deferred response, after Quart's request has ended."""

    __slots__ = (
        "_access_log", "_cross_origin", "_method", "_path", "_request_id", "_route", "_security", "_span", "_started",
    )  # fmt: skip

    def __init__(
        self, security: SecurityHeaders, access_log: AccessLog, cross_origin: Mapping[str, str] | None
    ) -> None:
        app_globals, request = _cv_app.get().g, current_request()
        self._security = security
        self._access_log = access_log
        self._cross_origin = cross_origin
        self._method = request.method
        # Log and metrics tell a request that waits on purpose from others with the same route.
        self._route = _route(request) + (HELD_SUFFIX if getattr(app_globals, "is_held", False) else "")
        self._path = request.path
        self._request_id = app_globals.request_id
        self._started = app_globals.started
        self._span = started_span(request.scope)

    def __call__(self, outcome: Response | Exception) -> Response:
        response = self._render(outcome) if isinstance(outcome, Exception) else outcome
        if self._cross_origin is not None:
            add_headers(response.headers, self._cross_origin)
        self._security.add(response.headers)
        response.headers.add("X-Request-Id", self._request_id)
        self._access_log.record(self._method, self._route, response.status_code, self._started, self._span)
        return response

    def _render(self, error: Exception) -> Response:
        return render_error(to_error_response(error), error_format_for(self._path))


class Middleware:
    def __init__(
        self,
        rules: RequestRules,
        forwarding: ForwardingMonitor,
        security: SecurityHeaders,
        access_log: AccessLog,
        cross_origin: CrossOriginAccess,
        challenges: Mapping[str, str] | None = None,
        *,
        show_reasons: bool = False,
    ) -> None:
        self._rules = rules
        self._cross_origin = cross_origin
        self._challenges = challenges or {}  # what a challenge says in addition, by the beginning of the path
        self._forwarding = forwarding
        self._show_reasons = show_reasons
        self._security = security
        self._access_log = access_log

    def register(self, app: QuartTrio) -> None:
        app.before_request(self.before)
        app.before_websocket(self.before)
        app.after_request(self.after)
        app.after_websocket(self.after_websocket)
        app.register_error_handler(Exception, self.handle_error)

    async def before(self) -> None:
        app_globals = _cv_app.get().g
        app_globals.started = time.perf_counter()
        app_globals.request_id = record_id()
        current_request_id.set(app_globals.request_id)
        request = current_request()
        if (tracing := self._access_log.tracing) is not None:
            tracing.start(request.scope, _route(request), app_globals.request_id)
        self._forwarding.observe(request.scope)
        if error := self._rules.violation(request.scope):
            raise error
        check_path(request)

    async def after(self, response: Response) -> Response:
        request = current_request()
        cross_origin: Mapping[str, str] | None = None
        if request.path in self._cross_origin.paths and isinstance(request, Request):
            cross_origin = await self._cross_origin.headers(request)
        finisher = ResponseFinisher(self._security, self._access_log, cross_origin)
        if isinstance(response, DeferredResponse):
            response.finish = finisher
            return response
        return finisher(response)

    async def after_websocket(self, response: ResponseTypes | None) -> ResponseTypes | None:
        """Quart passes a response only if the WebSocket was refused."""
        return await self.after(response) if isinstance(response, Response) else response

    async def handle_error(self, error: Exception) -> Response:
        if isinstance(error, HTTPException) and 300 <= (error.code or 0) < 400:
            return Response(b"", error.code, kept_headers(error))
        path = current_request().path
        error_format = error_format_for(path)
        rendered = to_error_response(error)
        if rendered.status == 401:
            self._add_challenge(path, rendered.headers)
        if error_format is ErrorFormat.PAGE and has_request_context():  # a WebSocket is opened by a program
            return await error_page(
                rendered.status,
                getattr(error, "page_text", rendered.message),
                g.request_id,
                rendered.headers,
                self._log_reason(error),
                heading=getattr(error, "heading", None),
                developer_hint=getattr(error, "developer_hint", None),
                developer_path=getattr(error, "developer_path", ""),
                facts=getattr(error, "page_facts", None),
                link=getattr(error, "page_link", None),
            )
        return render_error(rendered, error_format)

    def _add_challenge(self, path: str, headers: dict[str, str]) -> None:
        """Tells a program without valid credentials where it can read how to get some (RFC 9728 section 5.1)."""
        for prefix, parameter in self._challenges.items():
            if path.startswith(prefix):
                challenge = headers.get("WWW-Authenticate")
                headers["WWW-Authenticate"] = f"{challenge}, {parameter}" if challenge else f"Bearer {parameter}"

    def _log_reason(self, error: Exception) -> str:
        """Logs why a page refuses a request. Returns the reason if pages show it: while operators test locally."""
        reason = error.reason if isinstance(error, ApiError) else ""
        if reason:
            log.info("request.refused", reason=reason)
        return reason if self._show_reasons else ""


def _route(request: Request | Websocket) -> str:
    return request.url_rule.rule if request.url_rule else "-"
