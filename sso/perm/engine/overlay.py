"""A user's own entries over the schema of an application."""

from collections.abc import Mapping
from typing import Any

from sso.perm.engine import rules


def overlaid_tree(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the base tree with the user's entries over it. An empty section in ``own`` adds nothing."""
    result = {name: _copy(node) for name, node in base.items()}
    for name, node in own.items():
        if not isinstance(node, dict):
            continue
        if rules.is_rule(node):
            result[name] = {**result.get(name, {}), **node}
        else:
            subtree = overlaid_tree(result.get(name, {}), node)
            if subtree or name in base:
                result[name] = subtree
    return result


def overlaid_values(base: Mapping[str, Any], own: Mapping[str, Any], section: str, now: int) -> dict[str, Any]:
    """The values by path, such as ``secret_data.application.canRead``. Ended entries of the user are ignored."""
    values = {path: node["value"] for path, node in rules.rule_nodes(base, section)}
    for path, node in rules.rule_nodes(own, section):
        expired = node.get("expired")
        if not (type(expired) is int and 0 < expired <= now):
            values[path] = node["value"]
    return values


def _copy(node: Any) -> Any:
    """A deep copy: callers may change the tree they get, and the compiled schema must not change with it."""
    return {name: _copy(child) for name, child in node.items()} if isinstance(node, dict) else node
