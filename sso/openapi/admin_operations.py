"""Describes the routes of the management API from their table."""

from collections.abc import Iterable

from sso.admin.answers.shape import NO_DATA
from sso.admin.request import AdminRoute
from sso.change_stream.revision_headers import DEMAND, STATEMENT
from sso.openapi.admin_answers import answer_schema, is_list
from sso.openapi.operation_ids import management_operation_id, summary_of
from sso.openapi.schemas import SchemaComponents
from sso.web.api_description import JSON_BODY, STRING, ApiBody, ApiOperation, ApiParameter, ApiResponse

TAG, PREFIX = "Management", "/api/admin"
EVENTS = "text/event-stream"
SECURITY = (("userJwt", "factor"), ("serviceToken",))
_IF_MATCH = ApiParameter("If-Match", "The ETag of the record that was read; another version gets 412.", "header")
_LAST_EVENT_ID = ApiParameter("Last-Event-ID", "In place of `after`, for a stream of server-sent events.", "header")
_ETAG = {"ETag": "the version of the record"}


def admin_operations(routes: Iterable[AdminRoute], components: SchemaComponents) -> list[ApiOperation]:
    return [_operation(route, components) for route in routes]


def _operation(route: AdminRoute, components: SchemaComponents) -> ApiOperation:
    is_change = route.method != "GET"
    operation_id = route.operation or management_operation_id(route.method, route.path, is_list=is_list(route))
    return ApiOperation(
        route.method,
        PREFIX + route.path,
        TAG,
        route.summary or summary_of(operation_id),
        _responses(route, components, operation_id),
        f"Requires {_rights(route)}.{_details(route)}",
        _headers(route),
        _body(route),
        (401, 403, 404, 409, *((412,) if is_change else ())),
        SECURITY,
        route.query,
        operation_id,
    )


def _headers(route: AdminRoute) -> tuple[ApiParameter, ...]:
    if route.method != "GET":
        return (_IF_MATCH,)
    return (*((_LAST_EVENT_ID,) if route.waits else ()), *((DEMAND,) if route.states_revision else ()))


def _rights(route: AdminRoute) -> str:
    rights = f"the right `{route.right}`" + (f" or `{route.other_right}`" if route.other_right else "")
    return f"{rights}, or permissions at the record that allow the same" if route.by_permissions else rights


def _body(route: AdminRoute) -> ApiBody | None:
    if route.body is None:
        return None
    examples = {} if route.example is None else {"example": route.example}
    is_required = any(field.is_required() for field in route.body.model_fields.values())  # no body means {}
    return ApiBody(route.body, (JSON_BODY,), examples, required=is_required)


def _details(route: AdminRoute) -> str:
    text = route.details or " ".join((route.handler.__doc__ or "").split())
    return f" {text}" if text else ""


def _responses(route: AdminRoute, components: SchemaComponents, operation_id: str) -> dict[int, ApiResponse]:
    schema = answer_schema(components, route, operation_id)
    stated = STATEMENT if route.states_revision else {}
    if is_list(route):
        streams = {EVENTS: STRING} if route.waits else {}
        return {200: ApiResponse("A page of records.", schema, headers=stated, other_types=streams)}
    has_record = route.answer.data is not NO_DATA
    headers = (_ETAG if has_record else {}) | stated
    answer = ApiResponse("The record." if has_record else "Done.", schema, headers=headers)
    has_dry_run = "dry_run" in route.query.model_fields
    return {route.answer.status: answer} | ({200: answer} if has_dry_run else {})
