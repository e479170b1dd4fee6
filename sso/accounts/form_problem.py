"""Why a form was rejected."""

from collections.abc import Mapping

import msgspec


class FormProblem(msgspec.Struct, frozen=True):
    """A text for the user, and the field that it is about."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    field: str = "current_password"  # the field that gets the focus, in forms that distinguish them
