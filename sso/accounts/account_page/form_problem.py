"""Why a form of the account page was rejected."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FormProblem:
    """Why a form was rejected, as a text for the user."""

    text: str
    status: int = 422
    headers: Mapping[str, str] = field(default_factory=dict)
