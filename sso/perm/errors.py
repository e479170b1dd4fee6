"""Why a permission request is refused."""

from sso.core.refused import Refused


class Invalid(Refused):
    """The input is wrong. The message names the place and what is expected, and never repeats what was sent."""

    status = 400


class Conflict(Refused):
    """The input is right, but what is already there stands against it."""

    status = 409
    message = "conflict"
