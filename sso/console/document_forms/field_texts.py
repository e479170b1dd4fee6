"""Values of documents as texts of fields of one line. A text that a browser would alter is written as JSON."""

import re
from typing import Any

import orjson

from sso.console.json_fields import read_object
from sso.core.field_errors import FieldError
from sso.perm.input.rule_notation import is_json, value_text

_ALTERED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # browsers drop or change some of these in a line


def is_line(value: object) -> bool:
    """Returns whether a text can be shown and sent as a line, and is the same without the spaces around it."""
    return isinstance(value, str) and value != "" and value == value.strip() and not _ALTERED.search(value)


def scalar_text(value: Any) -> str:
    """Returns the text of a value of a rule, which `read_scalar` reads."""
    return value_text(value) if not isinstance(value, str) or is_line(value) else orjson.dumps(value).decode()


def read_scalar(text: str, field: str) -> Any:
    """Returns the value of a text: JSON, or the text itself. Raises FieldError for JSON that cannot be stored."""
    text = text.strip()
    value = read_json(text, field) if is_json(text) else text
    if isinstance(value, dict | list):
        raise FieldError((field,), "must be a text, a number, true, false or null")
    return value


def read_json(text: str, field: str) -> Any:
    """Returns any value that is JSON. Raises FieldError for other texts, and for JSON that cannot be stored."""
    if not is_json(text):
        raise FieldError((field,), "this is not JSON")
    return read_object(f'{{"value": {text}}}', field)["value"]


def hidden_text(value: Any) -> str:
    """Returns the text of a hidden field, which `read_object` reads; "" for nothing."""
    return orjson.dumps(value).decode() if value else ""
