"""Why the management API has refused a form, for people: at its field, in the words of the form."""

from dataclasses import dataclass
from typing import Any

from sso.admin.errors import PreconditionFailed
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError, field_text

CHANGED = "Someone else has changed this in the meantime. Reload the page to see the current values, then try again."
# What the API expects, in other words.
_PLAIN_WORDS = {
    "must be 1 to 32 Latin letters, digits, spaces or underscores": (
        "The title can have up to 32 letters, digits and spaces."
    ),
    "there is no user with this login": "There is no user with this e-mail address.",
}


@dataclass(frozen=True)
class FormError:
    text: str
    status: int = 422
    field: str = ""  # the field that the problem is about; "" if it is about the whole form
    summary: str = ""  # with the path of the field, for places that do not show the field; "": the text says enough

    @property
    def values(self) -> dict[str, Any]:
        """The template values of a form that was refused."""
        return {
            "problem": sentence(self.text),
            "problem_summary": self.summary or sentence(self.text),
            "problem_field": self.field,
            "status": self.status,
        }

    @classmethod
    def of(cls, error: ApiError) -> "FormError":
        if isinstance(error, PreconditionFailed):
            return cls(CHANGED, 409)
        status = error.status if error.status in (403, 404, 409, 429) else 422
        if isinstance(error, FieldError) and error.path:
            texts = (_readable(error), *(other.message for other in error.others))
            return cls("; ".join(texts), status, str(error.path[0]), _summary(error))
        return cls(error.message, status)


def sentence(text: str) -> str:
    """The label of the field is the subject of "must be a day", but not of "is required". A path stays as it is."""
    if text.partition(" ")[0].endswith(":"):
        return text
    subject = "This " if text.startswith(("is ", "has ", "needs ", "does ", "cannot ")) else ""
    return subject + text if subject else text[:1].upper() + text[1:]


def _summary(error: FieldError) -> str:
    match error.path:
        case ("conditions", int(), "condition", *_) | ("settings", "services", _, "groups", _, "role"):
            return sentence(_readable(error))
    return error.message + _hint(error)


def _readable(error: FieldError) -> str:
    """Returns what is expected, after the part of the path that the label of the field does not say."""
    expected = _PLAIN_WORDS.get(error.expected, error.expected)
    match error.path:
        case ("conditions", int(index), "condition", *_):
            return f"condition {index + 1}: {expected}"
        case ("settings", "services", _, "groups", _, "role") | ("roles", int(), *_):
            return expected
        case ("settings", _, *rest):
            inner = field_text(tuple(rest))
        case (_, *rest):
            inner = field_text(tuple(rest))
    return (f"{inner}: {expected}" if inner else expected) + _hint(error)


def _hint(error: FieldError) -> str:
    match error.path:
        case ("meta", "private_data" | "public_data", _, *_) | ("private_data" | "public_data", _, *_):
            return ', such as {"value": true}' if error.expected == "must be an object" else ""
    return ""
