"""Why the management API has refused a form, for people."""

from dataclasses import dataclass
from typing import Any

from sso.admin.errors import PreconditionFailed
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError

CHANGED = "Someone else has changed this in the meantime. Reload the page to see the current values, then try again."


@dataclass(frozen=True)
class FormError:
    text: str
    status: int = 422
    field: str = ""  # the field that the problem is about; "" if it is about the whole form

    @property
    def values(self) -> dict[str, Any]:
        """The template values of a form that was refused."""
        return {"problem": self.text, "problem_field": self.field, "status": self.status}

    @classmethod
    def of(cls, error: ApiError) -> "FormError":
        if isinstance(error, PreconditionFailed):
            return cls(CHANGED, 409)
        status = error.status if error.status in (403, 404, 409, 429) else 422
        if isinstance(error, FieldError) and error.path:
            return cls(_readable(error), status, str(error.path[0]))
        return cls(error.message, status)


def _readable(error: FieldError) -> str:
    """Replaces paths of the API that the form does not show by what it shows."""
    match error.path:
        case ("conditions", int(index), "condition", *_):
            return f"condition {index + 1}: {error.expected}"
        case ("settings", "services", _, "groups", _, "role"):
            return f"role: {error.expected}"
        case ("meta", "private_data" | "public_data", _, *_) | ("private_data" | "public_data", _, *_):
            if error.expected == "must be an object":
                return f'{error.message}, such as {{"value": true}}'
    return error.message
