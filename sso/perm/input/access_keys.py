"""The value of an access key that an operator has chosen."""

import re

from sso.core.field_errors import FieldError
from sso.core.jwt import looks_like_jwt

_KEY_VALUE = re.compile(r"[!-~]{32,512}")


def read_key_value(value: object) -> str:
    """Returns the value of a key. Clients send it as a bearer token, where it must not look like a JWT."""
    if not isinstance(value, str) or not _KEY_VALUE.fullmatch(value):
        raise FieldError(("hash",), "must be 32 to 512 printable ASCII characters without spaces")
    if looks_like_jwt(value):
        raise FieldError(("hash",), "must not contain exactly two dots, which would make it look like a JWT")
    return value
