"""Requests with chosen credentials, and forged tokens, for tests of authentication."""

import base64
import json
import time
from typing import Any

from tests.perm.endpoints.conftest import FACTOR, Studio

HOUR = 3600
NOW = int(time.time())

REFUSED = (401, {"status": "ERROR", "error": "invalid token"})


def post(
    studio: Studio, headers: dict[str, str] | None = None, path: str = "user/info", **body: Any
) -> tuple[int, Any]:
    """Status and body of the response, without the reason after "invalid token"."""
    response = studio.client.post(f"/api/permissions/{path}", json=body, headers=headers or {})
    content = response.json()
    if content.get("error", "").startswith("invalid token: "):
        content["error"] = "invalid token"
    return response.status_code, content


def refusal_reason(studio: Studio, headers: dict[str, str] | None = None, path: str = "user/info", **body: Any) -> str:
    """The error text of a 401 response."""
    response = studio.client.post(f"/api/permissions/{path}", json=body, headers=headers or {})
    assert response.status_code == 401
    return str(response.json()["error"])


def bearer(token: str, factor: str | None = FACTOR, service_jwt: str | None = None) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {token}", "Factor": factor, "Service-Jwt": service_jwt}
    return {name: value for name, value in headers.items() if value is not None}


UNVERIFIED: Any = {"verify_signature": False}


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"x" * 64) -> str:
    """A JWT that libraries refuse to create."""

    def part(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    return ".".join((part(json.dumps(header).encode()), part(json.dumps(claims).encode()), part(signature)))
