"""What an audit entry may hold of a record: no secret, and not more than a limited number of bytes."""

from collections.abc import Mapping
from typing import Any

import orjson

MAX_BYTES = 64 * 1024  # of before and of after, as JSON
REDACTED = "…"

# The secret fields of each kind of record, as paths. A field of the same name elsewhere, such as a rule called
# "secret", is no secret.
SECRET_FIELDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "access_key": (("hash",),),
    "application": (("service_meta", "private_key"), ("email_secret",)),
    "client": (("client_secret",),),
    "user": (("password",), ("totp_secret",)),
}


def recorded(operation: str, value: Any) -> Any:
    """The value as it is stored in an entry of this operation (``access_key.create``)."""
    for path in SECRET_FIELDS.get(operation.partition(".")[0], ()):
        value = _redacted(value, path)
    return _capped(value)


def _redacted(value: Any, path: tuple[str, ...]) -> Any:
    name, *below = path
    if not isinstance(value, dict) or value.get(name) is None:
        return value
    return value | {name: _redacted(value[name], tuple(below)) if below else REDACTED}


def _capped(value: Any) -> Any:
    """The value if it is small enough, else without its largest members; each says how large it was."""
    size = _size(value)
    if size <= MAX_BYTES:
        return value
    if not isinstance(value, dict):
        return _truncated(size)
    found = dict(value)
    sizes = sorted(((_size(member), name) for name, member in value.items()), reverse=True)
    for member_size, name in sizes:
        found[name] = _truncated(member_size)
        size -= member_size
        if size <= MAX_BYTES:
            break
    return found


def _truncated(size: int) -> dict[str, Any]:
    return {"truncated": True, "bytes": size}


def _size(value: Any) -> int:
    return len(orjson.dumps(value, default=str))
