"""What the pages of /docs/api show of the document: its operations, and the fields of one as rows of a table."""

from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import Struct, field

MAX_DEPTH = 3  # of fields in fields
JSON_BODY = "application/json"


class FieldRow(Struct, frozen=True):
    name: str
    type: str
    text: str
    required: bool
    depth: int
    values: tuple[str, ...] = ()


class ViewedOperation(Struct, frozen=True):
    id: str
    method: str
    path: str
    tag: str
    summary: str
    description: str
    parameters: tuple[dict[str, Any], ...]
    body: tuple[FieldRow, ...]
    example: str
    answers: tuple[tuple[str, str, tuple[FieldRow, ...]], ...]
    errors: tuple[tuple[str, str], ...]
    credentials: tuple[str, ...]

    @property
    def can_be_tried(self) -> bool:
        """A browser can send the request, and the answer is no page."""
        return self.path.startswith(("/api/", "/proxy/api/login")) and "Follow" not in self.summary


class DocumentViewer(Struct):
    title: str
    tags: dict[str, str]
    operations: dict[str, ViewedOperation] = field(default_factory=dict)

    def groups(self) -> Iterator[tuple[str, list[ViewedOperation]]]:
        for tag in self.tags:
            yield tag, [operation for operation in self.operations.values() if operation.tag == tag]


def read_viewer(content: bytes) -> DocumentViewer:
    document = orjson.loads(content)
    reader = _DocumentReader(document["components"])
    viewer = DocumentViewer(document["info"]["title"], {tag["name"]: tag["description"] for tag in document["tags"]})
    for path, item in document["paths"].items():
        for method, operation in item.items():
            viewer.operations[operation["operationId"]] = reader.operation(method.upper(), path, operation)
    return viewer


class _DocumentReader:
    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components

    def operation(self, method: str, path: str, operation: dict[str, Any]) -> ViewedOperation:
        body = operation.get("requestBody", {}).get("content", {}).get(JSON_BODY, {})
        examples = [example["value"] for example in body.get("examples", {}).values()]
        responses = {status: self._resolve(answer) for status, answer in operation["responses"].items()}
        return ViewedOperation(
            operation["operationId"],
            method,
            path,
            operation["tags"][0],
            operation["summary"],
            operation.get("description", ""),
            tuple(operation.get("parameters", ())),
            tuple(self._rows(body.get("schema", {}))),
            orjson.dumps(examples[0], option=orjson.OPT_INDENT_2).decode() if examples else "",
            tuple(
                (status, answer["description"], tuple(self._rows(_json_schema(answer))))
                for status, answer in responses.items()
                if status < "400"
            ),
            tuple((status, answer["description"]) for status, answer in responses.items() if status >= "400"),
            tuple(" and ".join(option) or "none" for option in operation.get("security", ())),
        )

    def _rows(self, schema: dict[str, Any], depth: int = 0) -> Iterator[FieldRow]:
        """The fields of an object, of the items of an array, and of each part of a union."""
        schema = self._resolve(schema)
        if depth >= MAX_DEPTH:
            return
        for part in (*schema.get("allOf", ()), *schema.get("anyOf", ())):
            yield from self._rows(part, depth)
        if "items" in schema:
            yield from self._rows(schema["items"], depth)
        for name, value in schema.get("properties", {}).items():
            values = tuple(str(item) for item in value.get("enum", ()) if item is not None)
            is_required = name in schema.get("required", ())
            yield FieldRow(name, self._type(value), value.get("description", ""), is_required, depth, values)
            yield from self._rows(value, depth + 1)

    def _type(self, schema: dict[str, Any]) -> str:
        if reference := schema.get("$ref"):
            return str(reference.rpartition("/")[2])
        if "anyOf" in schema:
            return " or ".join(dict.fromkeys(self._type(option) for option in schema["anyOf"]))
        types = schema.get("type", "any")
        names = types if isinstance(types, list) else [types]
        items = schema.get("items")
        return " or ".join(f"array of {self._type(items)}" if name == "array" and items else name for name in names)

    def _resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        if reference := schema.get("$ref"):
            kind, name = reference.split("/")[-2:]
            found: dict[str, Any] = self._components[kind][name]
            return found
        return schema


def _json_schema(answer: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = answer.get("content", {}).get(JSON_BODY, {}).get("schema", {})
    return schema
