"""Errors of the management API."""

from sso.core.errors import ApiError, RetryLater
from sso.core.field_errors import FieldError


class InvalidCursor(FieldError):
    def __init__(self) -> None:
        super().__init__(("after",), "must be `next` of an earlier response")


class PreconditionFailed(ApiError):
    status = 412
    message = "If-Match: the record was changed since it was read, read it again"


class TooManyHeldRequests(RetryLater):
    status = 429
    message = "too many open streams and long polls (at most 10 at a time): end one, then try again"
