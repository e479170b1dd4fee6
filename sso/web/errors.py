"""How a refusal looks to the client. The families of answers (§7) follow from the path: OAuth endpoints say ``error``
and ``error_description``, the other endpoints ``status`` and ``error``, everything else is a page for a person."""

from collections.abc import Mapping
from enum import Enum
from typing import Any


class Family(Enum):
    OAUTH = "oauth"
    ENVELOPE = "envelope"
    PAGE = "page"


PREFIXES = (
    ("/proxy/oauth/authorize", Family.PAGE),
    ("/proxy/oauth/logout", Family.PAGE),
    ("/proxy/oauth/exchangeJwt", Family.ENVELOPE),
    ("/proxy/oauth/", Family.OAUTH),
    ("/.well-known/", Family.OAUTH),
    ("/proxy/api/", Family.ENVELOPE),
    ("/api/", Family.ENVELOPE),
    ("/healthz", Family.ENVELOPE),
    ("/readyz", Family.ENVELOPE),
)


def family_of(path: str) -> Family:
    for prefix, family in PREFIXES:
        if path.startswith(prefix):
            return family
    return Family.PAGE


def error_body(family: Family, code: str, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    if family is Family.OAUTH:
        return {"error": code, "error_description": message, **extra}
    return {"status": "ERROR", "error": message, **extra}
