"""Why the management API has refused a form, for people."""

from collections.abc import Container
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sso.admin.errors import PreconditionFailed
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError, field_text

_NAMES = {"meta": "rules"}  # what pages call fields of the API
# What the API expects, in other words.
_PLAIN_WORDS = {
    "must be 1 to 32 Latin letters, digits, spaces or underscores": (
        "The title can have up to 32 letters, digits and spaces."
    ),
    "there is no user with this login": "There is no user with this e-mail address.",
}
CHANGED = "Someone else has changed this in the meantime. Reload the page to see the current values, then try again."


class FormError(Struct, frozen=True):
    text: str
    status: int = 422
    field: str = ""  # the field that the problem is about; "" if it is about the whole form
    at_field: str = ""  # the text below the field, whose label says what it is about
    above: str = ""  # the text above a form without the field

    @property
    def values(self) -> dict[str, Any]:
        """The template values of a form that was refused."""
        return {
            "problem": self.at_field or sentence(self.text),
            "problem_summary": self.text if self.at_field else sentence(self.text),  # on a page without the field
            "problem_field": self.field,
            "status": self.status,
        }

    def on_form(self, fields: Container[str]) -> "FormError":
        """Returns the error for a page that shows it once: below the field if the form has it, else above the form."""
        if self.field in fields:
            return replace(self, text=self.at_field or self.text, at_field="")
        return replace(self, text=self.above or self.text, field="", at_field="")

    @classmethod
    def of(cls, error: ApiError) -> "FormError":
        if isinstance(error, PreconditionFailed):
            return cls(CHANGED, 409)
        status = error.status if error.status in (403, 404, 409, 429) else 422
        if not isinstance(error, FieldError) or not error.path:
            return cls(error.message, status)
        field, name, inner = _place(error)
        expected = _expected(error)
        within = f"{inner}: " if inner else ""
        at_field, above = sentence(f"{within}{expected}"), sentence(f"{name}: {within}{expected}")
        texts = (f"{field_text(error.path)}: {expected}", *(other.message for other in error.others))
        return cls("; ".join(texts), status, field, at_field, above)


def sentence(text: str) -> str:
    """The label of the field is the subject of "must be a day", but not of "is required"."""
    if text.startswith(("is ", "has ", "needs ", "does ", "cannot ")):
        text = f"This {text}"
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


def _place(error: FieldError) -> tuple[str, str, str]:
    """Returns the field of the form, what the page calls it, and the path within its value."""
    match error.path:
        case ("conditions", int(index), *_):
            return f"condition_{index + 1}", f"condition {index + 1}", ""
        case ("settings", "services", _, "groups", _, "role") | ("roles", *_):
            return "role", "role", ""
        case ("settings", "allowed_domains", *_):
            return "allowed_domains", "allowed domains", ""
    field = str(error.path[0])
    name = field.partition(":")[0]  # without the number of a row
    return field, _NAMES.get(name, name.replace("_", " ")), field_text(error.path[1:])


def _expected(error: FieldError) -> str:
    match error.path:
        case ("meta", "private_data" | "public_data", _, *_) | ("private_data" | "public_data", _, *_):
            if error.expected == "must be an object":
                return f'{error.expected}, such as {{"value": true}}'
    return _PLAIN_WORDS.get(error.expected, error.expected)
