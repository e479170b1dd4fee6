"""Why a permission request is refused."""

from sso.core.errors import ApiError


class InvalidInput(ApiError):
    """The input is wrong. The message names the place and what is expected, and never repeats what was sent."""

    status = 400


class PermissionConflict(ApiError):
    """The input is right, but what is already there stands against it."""

    status = 409
    message = "conflict"
