"""Conditions in fields of forms: a short text such as ``domain=studio.example tag=beta``, or JSON."""

from typing import Any

import orjson

from sso.perm.input.condition_notation import parse_condition
from sso.web.body import InvalidBody


def read_condition(text: str, field: str) -> dict[str, Any]:
    """Returns the condition, unchecked; an empty field is an empty object. Raises InvalidBody or InvalidInput."""
    text = text.strip()
    if not text.startswith("{"):
        return parse_condition(text.split(), field)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidBody(f"{field}: line {error.lineno}, column {error.colno}: this is not JSON") from None
    assert isinstance(value, dict)
    return value
