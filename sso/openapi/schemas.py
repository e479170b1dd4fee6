"""Collects the JSON schemas of the models that validate requests."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from sso.web.api_description import JsonSchema, SchemaSource

_REFERENCE = "#/components/schemas/"


class SchemaComponents:
    def __init__(self) -> None:
        self.components: dict[str, JsonSchema] = {}

    def reference(self, source: SchemaSource) -> JsonSchema:
        """Returns the schema. A model becomes a reference to a component; ``$model`` in a schema is such a model."""
        if isinstance(source, dict):
            schema: JsonSchema = self._with_references(source)
            return schema
        schema = source.model_json_schema(ref_template=_REFERENCE + "{model}")
        for name, definition in schema.pop("$defs", {}).items():
            self._add(name, definition)
        self._add(source.__name__, schema)
        return {"$ref": _REFERENCE + source.__name__}

    def query_parameters(self, model: type[BaseModel]) -> Iterator[dict[str, Any]]:
        schema = _plain(model.model_json_schema())
        assert "$defs" not in schema, f"{model.__name__}: a parameter of a query must be a plain value"
        for name, field in schema.get("properties", {}).items():
            plain = {key: value for key, value in field.items() if key != "description"}
            parameter = {"name": name, "in": "query", "schema": without_null(plain)}
            if description := field.get("description"):
                parameter["description"] = description
            if name in schema.get("required", ()):
                parameter["required"] = True
            yield parameter

    def _add(self, name: str, schema: JsonSchema) -> None:
        schema = _plain(schema)
        assert self.components.setdefault(name, schema) == schema, f"two models have the name {name}"

    def _with_references(self, value: Any) -> Any:
        match value:
            case {"$model": model}:
                return self.reference(model)
            case dict():
                return {key: self._with_references(item) for key, item in value.items()}
            case list():
                return [self._with_references(item) for item in value]
        return value


def without_null(schema: JsonSchema) -> JsonSchema:
    """Returns the schema of a parameter, which is missing where a model has None."""
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    plain = {key: value for key, value in schema.items() if key != "anyOf"}
    return plain if not options else {**plain, **(options[0] if len(options) == 1 else {"anyOf": options})}


def _plain(schema: JsonSchema) -> JsonSchema:
    """Removes the titles that pydantic derives from names, and defaults that only say that a field may be missing."""
    plain = {key: value for key, value in schema.items() if key != "title"}
    if "properties" in plain:
        plain["properties"] = {
            name: {key: value for key, value in field.items() if key != "title" and _is_told(key, value)}
            for name, field in plain["properties"].items()
        }
    return plain


def _is_told(key: str, value: object) -> bool:
    return key != "default" or (bool(value) and not isinstance(value, dict))
