"""Merges a user's own data into the schema of an application. The user's entries override those of the schema."""

from collections.abc import Mapping
from typing import Any

from sso.perm.engine import rules


def tree_with_overrides(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the base tree in which the user's entries override those of the base.

    An empty section in ``own`` adds nothing.
    """
    result = {name: _copy(node) for name, node in base.items()}
    for name, node in own.items():
        if not isinstance(node, dict):
            continue
        if rules.is_rule(node):
            result[name] = {**result.get(name, {}), **node}
        else:
            subtree = tree_with_overrides(result.get(name, {}), node)
            if subtree or name in base:
                result[name] = subtree
    return result


def values_with_overrides(base: Mapping[str, Any], own: Mapping[str, Any], section: str, now: int) -> dict[str, Any]:
    """Returns the values by path, such as ``secret_data.application.canRead``. Ignores expired entries of the user."""
    values = {path: node["value"] for path, node in rules.rule_nodes(base, section)}
    for path, node in rules.rule_nodes(own, section):
        expired = node.get("expired")
        if not (type(expired) is int and 0 < expired <= now):
            values[path] = node["value"]
    return values


def _copy(node: Any) -> Any:
    """Returns a deep copy: callers may change the tree that they get, and that must not change the compiled schema."""
    return {name: _copy(child) for name, child in node.items()} if isinstance(node, dict) else node
