"""The response to a request that fails, whatever the error is."""

from typing import Any, NamedTuple

import structlog
from quart import Response
from werkzeug.exceptions import HTTPException

from sso.core.errors import ApiError
from sso.db.errors import DatabaseError
from sso.web.error_format import ErrorFormat, error_body
from sso.web.response import reply

log = structlog.get_logger()


class ErrorResponse(NamedTuple):
    """An error, before it is rendered in the format of the endpoint."""

    status: int
    code: str
    message: str
    headers: dict[str, str]
    extra: dict[str, Any]


def to_error_response(error: Exception) -> ErrorResponse:
    match error:
        case ApiError():
            return ErrorResponse(error.status, error.code, error.message, error.headers, error.extra)
        case DatabaseError():
            log.warning("request.database_failed", error=type(error).__name__, reason=str(error))
            message = "the service is not available for a moment, try again"
            return ErrorResponse(503, "temporarily_unavailable", message, {"Retry-After": "1"}, {})
        case HTTPException():
            name = (error.name or "error").lower()
            return ErrorResponse(error.code or 500, "invalid_request", name, kept_headers(error), {})
        case _:
            log.error("request.failed", error=type(error).__name__, exc_info=error)
            return ErrorResponse(500, "server_error", "internal error", {}, {})


def render_error(error: ErrorResponse, error_format: ErrorFormat) -> Response:
    """Renders an error as JSON."""
    return reply(error_body(error_format, error.code, error.message, error.extra), error.status, error.headers)


def kept_headers(error: HTTPException) -> dict[str, str]:
    return {name: value for name, value in error.get_headers() if name in ("Allow", "Location")}
