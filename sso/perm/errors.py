"""Errors of permission requests."""

from sso.core.errors import ApiError, RetryLater


class PermissionConflict(ApiError):
    """The input is valid but conflicts with stored data."""

    status = 409
    message = "conflict"


class TooManyAdminRequests(RetryLater):
    """The caller has sent more requests to manage permissions or other records than SSO_RATE_ADMIN allows."""

    status = 429
    message = "too many requests, try again later"
