"""Errors of the management API."""

from sso.core.errors import ApiError, RetryLater


class PreconditionFailed(ApiError):
    status = 412
    message = "If-Match: the record was changed since it was read, read it again"


class TooManyHeldRequests(RetryLater):
    status = 429
    message = "too many open streams and long polls (at most 10 at a time): end one, then try again"
