"""Why a form was rejected."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec import field as record_field


class FormProblem(Struct, frozen=True):
    """A text for the user, and the field that it is about."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = record_field(default_factory=dict)
    field: str = "current_password"  # the field that gets the focus, in forms that distinguish them
