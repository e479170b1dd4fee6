"""JSON in fields of forms, with the rules for bodies of the management API: what is accepted can be stored."""

import re
from typing import Any

from sso.web.body import SCHEMA_BODY, InvalidBody, parse_body

_SYNTAX = re.compile(r"is not valid JSON \((line \d+, column \d+)\)")


def read_object(text: str, field: str) -> dict[str, Any]:
    """Returns the object of a field; an empty field is an empty object. Raises InvalidBody."""
    try:
        return dict(parse_body(text.strip().encode(), "application/json", forms=False, **SCHEMA_BODY._asdict()).fields)
    except InvalidBody as error:
        problem = error.message.removeprefix("body ")
    syntax = _SYNTAX.fullmatch(problem)
    raise InvalidBody(f"{field}: {syntax[1]}: this is not JSON" if syntax else f"{field}: {problem}")
