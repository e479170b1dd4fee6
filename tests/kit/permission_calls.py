"""Calls of the permission endpoints."""

from typing import Any

from tests.perm.endpoints.conftest import ApiResponse, ApiUser


def audit(user: ApiUser, **data: Any) -> ApiResponse:
    return user.call("audit", data=data)


def get(user: ApiUser, app: object, options: dict[str, Any] | None = None, /, **data: Any) -> ApiResponse:
    body = {"options": options} if options is not None else {}
    return user.call("meta/data", action="get", application_id=app, data=data, **body)


def action(group: str, role: str, kind: str = "grant") -> dict[str, Any]:
    return {"group_id": group, "role": role, "action": kind}


def services(app: object, *actions: Any) -> dict[str, Any]:
    return {"services": {str(app): {"groups": list(actions)}}}
