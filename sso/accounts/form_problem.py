"""Why a form was rejected."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FormProblem:
    """A text for the user, and the field that it is about."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    field: str = "current_password"  # the field that gets the focus, in forms that distinguish them
