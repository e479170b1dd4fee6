"""Prepares values for the audit trail: secrets are redacted, large values are truncated."""

from collections.abc import Mapping
from typing import Any

import orjson

MAX_BYTES = 64 * 1024  # for each of before and after, as JSON
REDACTED = "…"

# The paths of the secret fields of each kind of record. Fields of the same name elsewhere are not secret.
SECRET_FIELDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "access_key": (("hash",),),
    "application": (("service_meta", "private_key"), ("email_secret",)),
    "client": (("client_secret",),),
    "identity_provider": (("client_secret",),),
    "user": (("password",), ("totp_secret",)),
    "webhook": (("secret",),),
}


def redact_and_truncate(operation: str, value: Any) -> Any:
    """The value as it is stored in an entry of this operation, such as ``access_key.create``."""
    for path in SECRET_FIELDS.get(operation.partition(".")[0], ()):
        value = _redact(value, path)
    return _truncate(value)


def _redact(value: Any, path: tuple[str, ...]) -> Any:
    name, *rest = path
    if not isinstance(value, dict) or value.get(name) is None:
        return value
    return value | {name: _redact(value[name], tuple(rest)) if rest else REDACTED}


def _truncate(value: Any) -> Any:
    """The value if it is small enough. Otherwise its largest members are replaced by their sizes."""
    size = _size(value)
    if size <= MAX_BYTES:
        return value
    if not isinstance(value, dict):
        return _size_marker(size)
    truncated = dict(value)
    sizes = sorted(((_size(member), name) for name, member in value.items()), reverse=True)
    for member_size, name in sizes:
        truncated[name] = _size_marker(member_size)
        size -= member_size
        if size <= MAX_BYTES:
            break
    return truncated


def _size_marker(size: int) -> dict[str, Any]:
    return {"truncated": True, "bytes": size}


def _size(value: Any) -> int:
    return len(orjson.dumps(value, default=str))
