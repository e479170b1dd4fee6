"""Errors with a text for people: for the client of a request, or for the operator of a command."""

from typing import Any, ClassVar


class OperatorError(Exception):
    """A command or the start of the service fails. The text is one line: what is wrong and how to fix it."""


class ApiError(Exception):
    """A request fails. Operations raise it, and the middleware renders it.

    The message is for the client and must not contain secrets.
    """

    status: int = 400
    code: ClassVar[str] = "invalid_request"  # the ``error`` of OAuth responses
    message: str = "bad request"
    # Details for the operator: logged, and shown on the error page of a server with a loopback base URL.
    reason: str = ""
    # What recordings of requests keep in place of a message that says something about a user or repeats what was sent.
    recorded_message: str = ""

    def __init__(self, message: str | None = None) -> None:
        if message is not None:
            self.message = message
        super().__init__(self.message)
        self.headers: dict[str, str] = {}
        self.extra: dict[str, Any] = {}


class NotFound(ApiError):
    status = 404
    message = "not found"


class Conflict(ApiError):
    """The request is valid but conflicts with stored data."""

    status = 409
    message = "conflict"


class Forbidden(ApiError):
    status = 403
    code = "access_denied"
    message = "forbidden"


class RetryLater(ApiError):
    """The same request may succeed after ``retry_after`` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after
        self.headers = {"Retry-After": str(retry_after)}


class ServerBusy(RetryLater):
    """Too much work is waiting."""

    status = 503
    code = "temporarily_unavailable"
    message = "the server is busy, try again later"

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__(retry_after)


class Unauthorized(ApiError):
    """The request needs a signed-in user and has none."""

    status = 401
    code = "invalid_token"
    message = "invalid token"
