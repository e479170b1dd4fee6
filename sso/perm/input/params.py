"""Reads the parameters of a rule: a comma-separated string."""

import re

from sso.perm.errors import InvalidInput

MAX_PARAMS = 64
MAX_PARAM = 128

# The separators of a list entry, and control characters.
_FORBIDDEN = re.compile(r"[|:\x00-\x1f\x7f-\x9f]")


def read_params(value: object, where: str = "params") -> str:
    """The string to store: parameters are trimmed; empty ones and duplicates are dropped."""
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: must be a comma-separated string")
    if _FORBIDDEN.search(value):
        raise InvalidInput(f"{where}: must not hold | or : or control characters")
    params = tuple(dict.fromkeys(part for part in (raw.strip() for raw in value.split(",")) if part))
    if len(params) > MAX_PARAMS:
        raise InvalidInput(f"{where}: must be at most {MAX_PARAMS} parameters")
    if any(len(part) > MAX_PARAM for part in params):
        raise InvalidInput(f"{where}: a parameter must be at most {MAX_PARAM} characters")
    return ",".join(params)
