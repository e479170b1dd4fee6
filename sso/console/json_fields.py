"""JSON and conditions in fields of forms, with the rules for bodies of the management API: all of it can be stored."""

from typing import Any

import orjson

from sso.core.field_errors import FieldError
from sso.perm.input.condition_notation import parse_condition
from sso.web.body import SCHEMA_BODY, InvalidBody, parse_body

MAX_INDENTED = SCHEMA_BODY.max_bytes // 8  # with spaces, which count when the field is read, it is much longer


def json_text(value: Any) -> str:
    """Returns the text of a field for JSON; an empty one for an empty object. A long one has no spaces."""
    if not value:
        return ""
    text = orjson.dumps(value)
    return (text if len(text) > MAX_INDENTED else orjson.dumps(value, option=orjson.OPT_INDENT_2)).decode()


def read_object(text: str, *path: str | int) -> dict[str, Any]:
    """Returns the object of a field; an empty field is an empty object. Raises FieldError."""
    try:
        return dict(parse_body(text.strip().encode(), "application/json", forms=False, **SCHEMA_BODY._asdict()).fields)
    except InvalidBody as error:
        problem = f"{error.position}: this is not JSON" if error.position else error.problem
    raise FieldError(path, problem)


def read_condition(text: str, *path: str | int) -> dict[str, Any]:
    """Returns a condition, unchecked: a short text such as ``domain=studio.example tag=beta``, or JSON.

    An empty field is an empty object. Raises FieldError.
    """
    text = text.strip()
    return read_object(text, *path) if text.startswith("{") else parse_condition(text.split(), path)
