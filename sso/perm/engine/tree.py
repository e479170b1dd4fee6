"""The user's schema as a tree: the stored record, the user's own data over the application's schema (§4.5).

No roles are merged in and no project access is shown: this is what a save writes, and what its answer returns.
"""

from collections.abc import Mapping
from typing import Any

from sso.perm.engine import rules
from sso.perm.engine.compiled import Schema
from sso.perm.engine.facts import Assignment, OwnRecord

DATA = ("login", "private_data", "public_data", "secret_data")
EVERY_SECTION = frozenset((*DATA, "roles"))


def as_tree(schema: Schema, own: OwnRecord, sections: frozenset[str] = EVERY_SECTION) -> dict[str, Any]:
    """Expired entries and roles included, each with its ``expired``: it is the record, not what it gives."""
    tree: dict[str, Any] = {
        name: overlaid(getattr(schema, name), getattr(own, name)) for name in DATA if name in sections
    }
    if "roles" in sections:
        tree["roles"] = [as_assigned(assignment) for assignment in own.roles]
    return tree


def as_assigned(assignment: Assignment) -> str | dict[str, Any]:
    """A name, or an object when the assignment is limited: both can be sent back in a save."""
    limits = {"expired": assignment.expired, "ttl": assignment.ttl}
    given = {name: value for name, value in limits.items() if value}
    return {"name": assignment.name, **given} if given else assignment.name


def overlaid(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the user's entries over it; an empty section of the user's adds nothing."""
    result = {name: _copy(node) for name, node in base.items()}
    for name, node in own.items():
        if not isinstance(node, dict):
            continue
        if rules.is_rule(node):
            result[name] = {**result.get(name, {}), **node}
        else:
            below = overlaid(result.get(name, {}), node)
            if below or name in base:
                result[name] = below
    return result


def overlaid_values(base: Mapping[str, Any], own: Mapping[str, Any], section: str, now: int) -> dict[str, Any]:
    """Values by path, such as ``secret_data.application.canRead``, without expired entries: these decide."""
    found = {path: node["value"] for path, node in rules.nodes(base, section)}
    for path, node in rules.nodes(own, section):
        expired = node.get("expired")
        if not (type(expired) is int and 0 < expired <= now):
            found[path] = node["value"]
    return found


def _copy(node: Any) -> Any:
    """Answers are the caller's to change; what is compiled stays as it is."""
    return {name: _copy(below) for name, below in node.items()} if isinstance(node, dict) else node
