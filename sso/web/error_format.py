"""The formats of errors (§7), chosen by path.

OAuth endpoints send ``error`` and ``error_description``, the other endpoints ``status`` and ``error``; everything else
is a page for a person.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any


class ErrorFormat(Enum):
    OAUTH = "oauth"
    ENVELOPE = "envelope"
    PAGE = "page"


FORMAT_BY_PREFIX = (
    ("/proxy/oauth/authorize", ErrorFormat.PAGE),
    ("/proxy/oauth/logout", ErrorFormat.PAGE),
    ("/proxy/oauth/exchangeJwt", ErrorFormat.ENVELOPE),
    ("/proxy/oauth/", ErrorFormat.OAUTH),
    ("/.well-known/", ErrorFormat.OAUTH),
    ("/ssf/", ErrorFormat.OAUTH),
    ("/proxy/api/", ErrorFormat.ENVELOPE),
    ("/api/", ErrorFormat.ENVELOPE),
    ("/access/", ErrorFormat.ENVELOPE),
    ("/healthz", ErrorFormat.ENVELOPE),
    ("/readyz", ErrorFormat.ENVELOPE),
    ("/openapi.json", ErrorFormat.ENVELOPE),
    ("/ws/", ErrorFormat.ENVELOPE),
)


def error_format_for(path: str) -> ErrorFormat:
    for prefix, error_format in FORMAT_BY_PREFIX:
        if path.startswith(prefix):
            return error_format
    return ErrorFormat.PAGE


def error_body(error_format: ErrorFormat, code: str, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    if error_format is ErrorFormat.OAUTH:
        return {"error": code, "error_description": message, **extra}
    return {"status": "ERROR", "error": message, **extra}
