"""Describes the routes of the management API from their table."""

from collections.abc import Iterable

from sso.admin.request import AdminRoute, ListQuery
from sso.openapi.admin_examples import record_example
from sso.web.api_description import (
    JSON_BODY,
    OBJECT,
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    ApiResponse,
    JsonSchema,
    envelope,
)

TAG, PREFIX = "Management", "/api/admin"
EVENTS = "text/event-stream"
SECURITY = (("userJwt", "factor"), ("serviceToken",))
_VERBS = {"POST": "Create", "PUT": "Replace", "PATCH": "Change", "DELETE": "Delete"}
_IF_MATCH = ApiParameter("If-Match", "The ETag of the record that was read; another version gets 412.", "header")
_LAST_EVENT_ID = ApiParameter("Last-Event-ID", "In place of `after`, for a stream of server-sent events.", "header")
_ETAG = {"ETag": "the version of the record"}


def admin_operations(routes: Iterable[AdminRoute]) -> list[ApiOperation]:
    return [_operation(route) for route in routes]


def _operation(route: AdminRoute) -> ApiOperation:
    is_change = route.method != "GET"
    return ApiOperation(
        route.method,
        PREFIX + route.path,
        TAG,
        route.summary or _summary(route),
        _responses(route),
        f"Requires {_rights(route)}.{_details(route)}",
        (_IF_MATCH,) if is_change else (_LAST_EVENT_ID,) if route.waits else (),
        _body(route),
        (401, 403, 404, *((409, 412) if is_change else ())),
        SECURITY,
        route.query,
    )


def _rights(route: AdminRoute) -> str:
    rights = f"the right `{route.right}`" + (f" or `{route.other_right}`" if route.other_right else "")
    return f"{rights}, or permissions at the record that allow the same" if route.by_permissions else rights


def _body(route: AdminRoute) -> ApiBody | None:
    if route.body is None:
        return None
    examples = {} if route.example is None else {"example": route.example}
    is_required = any(field.is_required() for field in route.body.model_fields.values())  # no body means {}
    return ApiBody(route.body, (JSON_BODY,), examples, required=is_required)


def _summary(route: AdminRoute) -> str:
    """Names the resource: ``List users``, ``Delete a session of a user``."""
    parts = [part for part in route.path.split("/") if part]
    names: list[str] = []
    for name, following in zip(parts, [*parts[1:], ""], strict=True):
        if not name.startswith("<"):
            is_one = following.startswith("<") or (route.method == "POST" and not following)
            names.append(_one(name) if is_one else name.replace("-", " "))
    resource = " of ".join(reversed(names))
    if route.method == "GET":
        return f"{'List' if _is_list(route) else 'Read'} {resource}"
    return f"{_VERBS[route.method]} {resource}"


def _one(plural: str) -> str:
    name = plural.replace("-", " ").removesuffix("s")
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _details(route: AdminRoute) -> str:
    text = route.details or " ".join((route.handler.__doc__ or "").split())
    return f" {text}" if text else ""


def _is_list(route: AdminRoute) -> bool:
    return issubclass(route.query, ListQuery)


def _responses(route: AdminRoute) -> dict[int, ApiResponse]:
    if _is_list(route):
        items: JsonSchema = {"type": "array", "items": OBJECT}
        next_after = {"type": ["string", "null"], "description": "`after` of the next page; null on the last one."}
        return {
            200: ApiResponse(
                "A page of records.",
                envelope(("data", "next"), data=items, next=next_after),
                example={"status": "OK", "data": [record_example(route.path)], "next": None},
                other_types={EVENTS: STRING} if route.waits else {},
            )
        }
    if route.method == "DELETE":
        return {200: ApiResponse("The record was deleted.", envelope(data={}), example={"status": "OK"})}
    example = {"status": "OK", "data": record_example(route.path)}
    answer = ApiResponse("The record.", envelope(data={}), example=example, headers=_ETAG)
    return {200: answer, **({201: answer} if route.method == "POST" else {})}
