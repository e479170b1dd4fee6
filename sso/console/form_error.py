"""Why the management API has refused a form, for people."""

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any

from sso.admin.errors import PreconditionFailed
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError, field_text

_NAMES = {"meta": "rules"}  # what pages call fields of the API
CHANGED = "Someone else has changed this in the meantime. Reload the page to see the current values, then try again."


@dataclass(frozen=True)
class FormError:
    text: str
    status: int = 422
    field: str = ""  # the field that the problem is about; "" if it is about the whole form
    at_field: str = ""  # the text below the field, whose label says what it is about
    above: str = ""  # the text above a form without the field

    @property
    def values(self) -> dict[str, Any]:
        """The template values of a form that was refused."""
        return {"problem": self.text, "problem_field": self.field, "status": self.status}

    def on_form(self, fields: Container[str]) -> "FormError":
        """Returns the error for a page that shows it once: below the field if the form has it, else above the form."""
        if self.field in fields:
            return replace(self, text=self.at_field or self.text)
        return replace(self, text=self.above or self.text, field="")

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
        return cls(f"{field_text(error.path)}: {expected}", status, field, at_field, above)


def sentence(text: str) -> str:
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
    return error.expected
