"""Parameters of rules: comma-separated, merged as a set that keeps its order."""

import re

from sso.perm.errors import InvalidInput

MAX_PARAMS = 64
MAX_PARAM = 128

# What separates the parts of a list entry, and what cannot be seen. The comma separates parameters.
_FORBIDDEN = re.compile(r"[|:\x00-\x1f\x7f-\x9f]")


def read_params(value: object, where: str = "params") -> str:
    """The string to store: parameters trimmed, without empty ones and doubles."""
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: must be a comma-separated string")
    if _FORBIDDEN.search(value):
        raise InvalidInput(f"{where}: must not hold | or : or control characters")
    found = tuple(dict.fromkeys(part for part in (raw.strip() for raw in value.split(",")) if part))
    if len(found) > MAX_PARAMS:
        raise InvalidInput(f"{where}: must be at most {MAX_PARAMS} parameters")
    if any(len(part) > MAX_PARAM for part in found):
        raise InvalidInput(f"{where}: a parameter must be at most {MAX_PARAM} characters")
    return ",".join(found)
