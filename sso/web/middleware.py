"""The edge of the application: what every request gets at its beginning, and every answer and error at its end."""

import time
from typing import Any, NamedTuple

import structlog
from quart import Response, g, has_request_context
from quart.globals import _cv_app
from quart.typing import ResponseTypes
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from sso.core.errors import ApiError
from sso.core.ids import record_id
from sso.db.errors import DatabaseError
from sso.log import current_request_id
from sso.web.access_log import AccessLog
from sso.web.body import InvalidBody
from sso.web.deferred import DeferredResponse
from sso.web.error_format import ErrorFormat, error_body, error_format_for
from sso.web.error_page import error_page
from sso.web.forwarding_monitor import ForwardingMonitor
from sso.web.request import current_request
from sso.web.request_rules import RequestRules, check_path
from sso.web.response import reply
from sso.web.security_headers import SecurityHeaders

log = structlog.get_logger()


class ErrorResponse(NamedTuple):
    """An error, as it is told."""

    status: int
    code: str
    message: str
    headers: dict[str, str]
    extra: dict[str, Any]


class ResponseFinisher:
    """What is known of a request from its beginning, and done at its end: at once, or when its answer has come."""

    __slots__ = ("_family", "_method", "_request_id", "_route", "_security", "_started", "_told")

    def __init__(self, security: SecurityHeaders, told: AccessLog) -> None:
        here, what = _cv_app.get().g, current_request()
        self._security = security
        self._told = told
        self._method = what.method
        self._route = what.url_rule.rule if what.url_rule else "-"
        self._family = error_format_for(what.path)
        self._request_id = here.request_id
        self._started = here.started

    def __call__(self, outcome: Response | Exception) -> Response:
        response = render_error(to_error_response(outcome), self._family) if isinstance(outcome, Exception) else outcome
        self._security.add(response.headers)
        response.headers.add("X-Request-Id", self._request_id)
        self._told.request(self._method, self._route, response.status_code, self._started)
        return response


class Middleware:
    def __init__(
        self,
        rules: RequestRules,
        forwarding: ForwardingMonitor,
        security: SecurityHeaders,
        told: AccessLog,
        *,
        show_reasons: bool = False,
    ) -> None:
        self._rules = rules
        self._forwarding = forwarding
        self._show_reasons = show_reasons
        self._security = security
        self._told = told

    def register(self, app: QuartTrio) -> None:
        app.before_request(self.begin)
        app.before_websocket(self.begin)
        app.after_request(self.end)
        app.after_websocket(self.end_socket)
        app.register_error_handler(Exception, self.show)

    async def begin(self) -> None:
        here = _cv_app.get().g
        here.started = time.perf_counter()
        here.request_id = record_id()
        current_request_id.set(here.request_id)
        request = current_request()
        self._forwarding.observe(request.scope)
        if problem := self._rules.problem(request.scope):
            raise problem
        check_path(request)

    async def end(self, response: Response) -> Response:
        ending = ResponseFinisher(self._security, self._told)
        if isinstance(response, DeferredResponse):
            response.finish = ending
            return response
        return ending(response)

    async def end_socket(self, response: ResponseTypes | None) -> ResponseTypes | None:
        """There is a response only where no socket was opened."""
        return await self.end(response) if isinstance(response, Response) else response

    async def show(self, error: Exception) -> Response:
        if isinstance(error, HTTPException) and 300 <= (error.code or 0) < 400:
            return Response(b"", error.code, _kept(error))
        family = error_format_for(current_request().path)
        problem = to_error_response(error)
        if family is ErrorFormat.PAGE and has_request_context():  # whoever wants a socket is a program
            return await error_page(
                problem.status, problem.message, g.request_id, problem.headers, self._reason_shown(error)
            )
        return render_error(problem, family)

    def _reason_shown(self, error: Exception) -> str:
        """Why a page refuses something: always logged, and shown where operators try out their own service."""
        reason = error.reason if isinstance(error, ApiError) else ""
        if reason:
            log.info("request.refused", reason=reason)
        return reason if self._show_reasons else ""


def to_error_response(error: Exception) -> ErrorResponse:
    match error:
        case ApiError():
            return ErrorResponse(error.status, error.code, error.message, error.headers, error.extra)
        case InvalidBody():
            return ErrorResponse(error.status, "invalid_request", str(error), {}, {})
        case DatabaseError():
            log.warning("database", error=type(error).__name__, reason=str(error))
            message = "the service is not available for a moment, try again"
            return ErrorResponse(503, "temporarily_unavailable", message, {"Retry-After": "1"}, {})
        case HTTPException():
            name = (error.name or "error").lower()
            return ErrorResponse(error.code or 500, "invalid_request", name, _kept(error), {})
        case _:
            log.error("request failed", error=type(error).__name__, exc_info=error)
            return ErrorResponse(500, "server_error", "internal error", {}, {})


def render_error(problem: ErrorResponse, family: ErrorFormat) -> Response:
    """For a program."""
    return reply(error_body(family, problem.code, problem.message, problem.extra), problem.status, problem.headers)


def _kept(error: HTTPException) -> dict[str, str]:
    return {name: value for name, value in error.get_headers() if name in ("Allow", "Location")}
