"""Errors of the management API."""

from sso.core.errors import ApiError


class Conflict(ApiError):
    """The request is valid but conflicts with stored data."""

    status = 409
    message = "conflict"
