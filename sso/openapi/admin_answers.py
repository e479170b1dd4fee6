"""The schemas of the answers of the management API, as components with names of their own."""

from typing import Any

from sso.admin.answers.permissions import IMPACT
from sso.admin.answers.shape import NO_DATA, RecordShape, Shape
from sso.admin.request import AdminRoute, ListQuery, WriteQuery
from sso.openapi.plain_schema import component_name
from sso.openapi.schemas import SchemaComponents
from sso.web.api_description import JsonSchema, envelope

_WARNINGS: JsonSchema = {"type": "array", "items": {"type": "string"}}
_NEXT: JsonSchema = {"type": ["string", "null"]}


def answer_schema(components: SchemaComponents, route: AdminRoute, operation_id: str) -> JsonSchema:
    """Returns a reference to the schema of the answers of a route.

    Routes with the same members share it, so that a generated client has one type for them.
    """
    answer = route.answer
    more = {name: components.reference(shape) for name, shape in answer.more.items()}
    if is_list(route):
        items = {"type": "array", "items": components.reference(answer.data)}
        schema = envelope(("data", "next"), data=items, next=_NEXT, **more)
        return components.add(_name(answer.data, "List", operation_id, bool(more)), schema)
    more["warnings"] = _WARNINGS
    has_dry_run = issubclass(route.query, WriteQuery)
    if has_dry_run:
        more |= {name: components.reference(shape) for name, shape in IMPACT.items()}
    data = {} if answer.data is NO_DATA else {"data": components.reference(answer.data)}
    schema = envelope(tuple(data) if not has_dry_run else (), **data, **more)
    ending = "OrDryRun" if has_dry_run else "Answer"
    return components.add(_name(answer.data, ending, operation_id, bool(answer.more)), schema)


def is_list(route: AdminRoute) -> bool:
    return route.answer.is_list or issubclass(route.query, ListQuery)


def _name(shape: Shape, ending: str, operation_id: str, has_own_members: bool) -> str:
    if has_own_members:
        return "".join(word.title() for word in operation_id.split("_")) + ending
    if shape is NO_DATA:
        return f"Done{ending.removesuffix('Answer')}"
    record: Any = shape.name if isinstance(shape, RecordShape) else component_name(shape.__name__)
    return f"{record}{ending}"
