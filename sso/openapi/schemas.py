"""Collects the JSON schemas of requests and answers as components of the document."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter
from typing_extensions import is_typeddict

from sso.admin.answers.shape import RecordShape
from sso.openapi.plain_schema import (
    REFERENCE,
    component_name,
    described,
    plain_schema,
    without_constraints,
    without_null,
)
from sso.web.api_description import JsonSchema, SchemaSource

_TEMPLATE = REFERENCE + "{model}"


class SchemaComponents:
    def __init__(self) -> None:
        self.components: dict[str, JsonSchema] = {}

    def reference(self, source: SchemaSource) -> JsonSchema:
        """Returns the schema. A model, a record or a TypedDict becomes a reference to a component.

        ``$model`` in a schema is such a source.
        """
        if isinstance(source, dict):
            schema: JsonSchema = described("", self._with_references(source))
            return schema
        if isinstance(source, RecordShape):
            return self.add(source.name, self._record(source))
        if isinstance(source, type) and issubclass(source, BaseModel):
            return self.add(
                source.__name__, self._without_definitions(source.model_json_schema(ref_template=_TEMPLATE))
            )
        schema = self._of_type(source)
        return self.add(source.__name__, schema) if is_typeddict(source) else plain_schema("", schema)

    def add(self, name: str, schema: JsonSchema) -> JsonSchema:
        name = component_name(name)
        schema = plain_schema(name, schema)
        assert self.components.setdefault(name, schema) == schema, f"two models have the name {name}"
        return {"$ref": REFERENCE + name}

    def query_parameters(self, model: type[BaseModel]) -> Iterator[dict[str, Any]]:
        schema = plain_schema(model.__name__, model.model_json_schema())
        assert "$defs" not in schema, f"{model.__name__}: a parameter of a query must be a plain value"
        for name, field in schema.get("properties", {}).items():
            plain = {key: value for key, value in field.items() if key not in ("description", "examples")}
            parameter = {"name": name, "in": "query", "schema": without_null(plain)}
            if description := field.get("description"):
                parameter["description"] = description
            if name in schema.get("required", ()):
                parameter["required"] = True
            yield parameter

    def _record(self, shape: RecordShape) -> JsonSchema:
        """A stored value may break the rules for new ones, so an answer has types and no limits."""
        saved = self._without_definitions(shape.saved.model_json_schema(ref_template=_TEMPLATE))["properties"]
        fields: JsonSchema = self._of_type(shape.fields) if shape.fields else {"properties": {}}
        kept = {name: schema for name, schema in saved.items() if name not in shape.without}
        properties = {
            name: plain_schema(shape.saved.__name__, {"properties": {name: schema}})["properties"][name]
            for name, schema in kept.items()
        }
        properties = {name: without_constraints(without_null(schema)) for name, schema in properties.items()}
        own = fields["properties"]
        # The description of a field is the same in requests and in answers.
        texts = {name: {"description": properties[name].get("description", "")} for name in own if name in properties}
        merged = properties | {name: schema | texts.get(name, {}) for name, schema in own.items()}
        required = [name for name in kept if name not in shape.optional and name not in own]
        return {"type": "object", "properties": merged, "required": [*required, *fields.get("required", ())]}

    def _of_type(self, source: Any) -> JsonSchema:
        return self._without_definitions(TypeAdapter(source).json_schema(ref_template=_TEMPLATE))

    def _without_definitions(self, schema: JsonSchema) -> JsonSchema:
        for name, definition in schema.pop("$defs", {}).items():
            self.add(name, definition)
        return schema

    def _with_references(self, value: Any) -> Any:
        match value:
            case {"$model": model}:
                return self.reference(model)
            case dict():
                return {key: self._with_references(item) for key, item in value.items()}
            case list():
                return [self._with_references(item) for item in value]
        return value
