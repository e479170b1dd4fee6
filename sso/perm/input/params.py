"""The parameters of a rule: a comma-separated string."""

import re

from sso.core.field_errors import FieldPath
from sso.perm.input.validators import read

MAX_PARAMS = 64
MAX_PARAM = 128

# The separators of a list entry, and control characters.
_FORBIDDEN = re.compile(r"[|:\x00-\x1f\x7f-\x9f]")


def check_params(value: object) -> str:
    """The string to store: parameters are trimmed; empty ones and duplicates are dropped."""
    if not isinstance(value, str):
        raise ValueError("must be a comma-separated string")  # noqa: TRY004 - a check raises one kind of error
    if _FORBIDDEN.search(value):
        raise ValueError("must not contain | or : or control characters")
    params = tuple(dict.fromkeys(part for part in (raw.strip() for raw in value.split(",")) if part))
    if len(params) > MAX_PARAMS:
        raise ValueError(f"must have at most {MAX_PARAMS} parameters")
    if any(len(part) > MAX_PARAM for part in params):
        raise ValueError(f"a parameter must be at most {MAX_PARAM} characters")
    return ",".join(params)


def read_params(value: object, path: FieldPath = ("params",)) -> str:
    return read(check_params, value, path)
