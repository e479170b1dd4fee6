"""Conditions in fields of forms: a short text such as ``domain=studio.example tag=beta``, or JSON."""

from typing import Any

from sso.console.json_fields import read_object
from sso.perm.input.condition_notation import parse_condition


def read_condition(text: str, field: str) -> dict[str, Any]:
    """Returns the condition, unchecked; an empty field is an empty object. Raises FieldError."""
    text = text.strip()
    return read_object(text, field) if text.startswith("{") else parse_condition(text.split(), (field,))
