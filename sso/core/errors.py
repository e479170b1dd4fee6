"""An error class is a wire code: operations raise it, the edge renders it in one place."""

from typing import Any, ClassVar


class ApiError(Exception):
    """A request that cannot be granted: the message is for the client and says nothing secret."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "invalid_request"  # the word of the OAuth family
    message: str = "bad request"
    # More for the operator: logged under the reference of a page, and shown there by a service at a loopback address.
    reason: str = ""

    def __init__(self, message: str | None = None) -> None:
        if message is not None:
            self.message = message
        super().__init__(self.message)
        self.headers: dict[str, str] = {}
        self.extra: dict[str, Any] = {}


class NotFound(ApiError):
    status = 404
    message = "not found"


class Forbidden(ApiError):
    status = 403
    code = "access_denied"
    message = "forbidden"


class Busy(ApiError):
    """Too much work is waiting."""

    status = 503
    code = "temporarily_unavailable"
    message = "the server is busy, try again later"

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__()
        self.headers = {"Retry-After": str(retry_after)}


class Unauthorized(ApiError):
    """Nobody is signed in where somebody must be."""

    status = 401
    code = "invalid_token"
    message = "invalid token"
