"""Examples for the editors of schemas and roles."""

from collections.abc import Iterator
from typing import Any

import orjson


def json_text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if value else ""


SECTIONS = ("private_data", "public_data")  # whose rules roles give
SCHEMA_EXAMPLE = json_text({"chat": {"write": {"value": True}, "kick": {"value": False}}})
_RULE = ("private_data", "chat", "kick")  # the example, if the schema has no rules


def rule_paths(schema: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the rules of the schema, each with its section: those first that users do not have without a role."""
    found = [item for section in SECTIONS for item in _rules(schema.get(section, {}), (section,))]
    return [path for path, _ in sorted(found, key=lambda item: bool(item[1]))]


def rule_names(schema: dict[str, Any]) -> list[str]:
    return [".".join(path) for path in rule_paths(schema)]


def role_example(schema: dict[str, Any]) -> str:
    """Returns the rules of a role that gives the first rule of the schema."""
    example: Any = {"value": True}
    for name in reversed(next(iter(rule_paths(schema)), _RULE)):
        example = {name: example}
    return json_text(example)


def _rules(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(node, dict):
        return
    if "value" in node and not isinstance(node["value"], dict):
        yield path, node["value"]
        return
    for name, child in node.items():
        yield from _rules(child, (*path, name))
