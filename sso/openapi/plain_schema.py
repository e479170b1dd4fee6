"""Makes the schemas that pydantic generates short: no titles, no unions with null, and a text for each field."""

from typing import Any

from sso.openapi.field_texts import EXAMPLES, FIELDS
from sso.web.api_description import JsonSchema

REFERENCE = "#/components/schemas/"
# A constraint of pydantic that its generator does not translate behind a validator of our own.
_KEYWORDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_CONSTRAINTS = frozenset(
    ("minimum", "maximum", "minLength", "maxLength", "pattern", "format", "maxItems", "minItems", "default")
)
_NULL = {"type": "null"}


def component_name(name: str) -> str:
    """Returns the name in the document: a TypedDict ``UserJson`` is the record ``User``."""
    return name.removesuffix("Json")


def plain_schema(name: str, schema: JsonSchema) -> JsonSchema:
    """Returns the schema of a model with this name."""
    plain: JsonSchema = described(name, _plain(schema))
    return plain


def described(model: str, schema: Any) -> Any:
    """Adds the texts of ``field_texts`` to fields that have no description of their own."""
    if isinstance(schema, list):
        return [described(model, item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            result[key] = {name: _field(model, name, described(model, field)) for name, field in value.items()}
        else:
            result[key] = value if key in ("examples", "example") else described(model, value)
    return result


def _field(model: str, name: str, schema: JsonSchema) -> JsonSchema:
    text = FIELDS.get(f"{model}.{name}") or schema.get("description") or FIELDS.get(name)
    field = schema | ({"description": text} if text else {})
    example = EXAMPLES.get(name)
    if example is not None and not field.keys() & {"examples", "enum", "const"} and _has_type(field, example):
        field["examples"] = [example]
    return field


def _has_type(schema: JsonSchema, example: object) -> bool:
    types = schema.get("type")
    names = {str: "string", int: "integer", list: "array", dict: "object"}
    return names.get(type(example)) in (types if isinstance(types, list) else [types])


def _plain(schema: Any, *, is_field: bool = False) -> Any:
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if isinstance(schema, str) and schema.startswith(REFERENCE):
        return component_name(schema)
    if not isinstance(schema, dict):
        return schema
    plain: JsonSchema = {
        _KEYWORDS.get(str(key), str(key)): value if key in ("enum", "const", "examples", "default") else _plain(value)
        for key, value in schema.items()
        if key not in ("title", "properties") and not (is_field and _says_nothing(key, value))
    }
    if "properties" in schema:
        plain["properties"] = {name: _plain(field, is_field=True) for name, field in schema["properties"].items()}
    return _with_null_type(plain)


def _says_nothing(key: str, value: object) -> bool:
    """A default that only says that the field may be missing."""
    return key == "default" and (not value or isinstance(value, dict))


def _with_null_type(schema: JsonSchema) -> JsonSchema:
    """``{"type": ["string", "null"]}`` in place of a union with null."""
    options = schema.get("anyOf", [])
    others = [option for option in options if option != _NULL]
    if len(others) != 1 or len(options) != 2 or not isinstance(others[0].get("type"), str):
        return schema
    merged: JsonSchema = {key: value for key, value in schema.items() if key != "anyOf"} | others[0]
    merged["type"] = [others[0]["type"], "null"]
    if "enum" in merged:
        merged["enum"] = [*merged["enum"], None]
    return merged


def without_null(schema: JsonSchema) -> JsonSchema:
    """Returns the schema of a value that is missing where a model has None."""
    plain = dict(schema)
    if isinstance(plain.get("type"), list):
        types = [name for name in plain["type"] if name != "null"]
        plain["type"] = types[0] if len(types) == 1 else types
        if "enum" in plain:
            plain["enum"] = [value for value in plain["enum"] if value is not None]
    options = [option for option in plain.pop("anyOf", []) if option != _NULL]
    return plain if not options else {**plain, **(options[0] if len(options) == 1 else {"anyOf": options})}


def without_constraints(schema: Any) -> Any:
    """Returns the types of a schema."""
    if isinstance(schema, list):
        return [without_constraints(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: without_constraints(value) for key, value in schema.items() if key not in _CONSTRAINTS}
    # A number that requests may also send as a string is a number in answers.
    if plain.get("anyOf") == [{"type": "integer"}, {"type": "string"}]:
        del plain["anyOf"]
        plain["type"] = "integer"
    return plain
