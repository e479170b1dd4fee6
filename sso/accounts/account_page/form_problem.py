"""Why a form of the account page was rejected."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FormProblem:
    """Why a form was rejected, as a text for the user."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    field: str = "current_password"  # the field that gets the focus, in forms that distinguish them
