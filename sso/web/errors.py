"""How a refusal looks to the client. The families of answers (§7) follow from the path: OAuth endpoints say ``error``
and ``error_description``, the other endpoints ``status`` and ``error``, everything else is a page for a person."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

PREFIXES = (
    ("/proxy/oauth/authorize", "page"),
    ("/proxy/oauth/logout", "page"),
    ("/proxy/oauth/exchangeJwt", "envelope"),
    ("/proxy/oauth/", "oauth"),
    ("/.well-known/", "oauth"),
    ("/proxy/api/", "envelope"),
    ("/api/", "envelope"),
    ("/healthz", "envelope"),
    ("/readyz", "envelope"),
)


class Family(Enum):
    OAUTH = "oauth"
    ENVELOPE = "envelope"
    PAGE = "page"


def family_of(path: str) -> Family:
    return next((Family(family) for prefix, family in PREFIXES if path.startswith(prefix)), Family.PAGE)


def error_body(family: Family, code: str, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    if family is Family.OAUTH:
        return {"error": code, "error_description": message, **extra}
    return {"status": "ERROR", "error": message, **extra}
