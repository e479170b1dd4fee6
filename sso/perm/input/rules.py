"""Trees of rules in requests: the sections of an application's schema, of a role, or of a user's own data.

A node whose ``value`` is not an object is a rule; any other node is a section of named nodes. The members of a rule are
reserved names, so a rule and a section cannot be confused. A rule has no rules below it.
"""

from enum import Enum
from typing import Any

from msgspec import Struct, field

from sso.core.field_errors import FieldError, FieldPath
from sso.perm.engine.reserved_names import RULE_MEMBERS
from sso.perm.engine.rules import MAX_DEPTH, is_rule
from sso.perm.input.names import read_segment
from sso.perm.input.params import read_params
from sso.perm.input.validators import (
    MAX_TEXT,
    read_flag,
    read_number,
    read_object,
    read_text,
    unknown_field_warnings,
)

MAX_RULES = 10_000  # per section
# Of a section of a user's own data: a list has each rule with the names of the sections that it is in. Those of schemas
# and roles are limited together, for the application.
MAX_OWN_NAMES = 1_000_000


class Layer(Enum):
    """The layer that the rules belong to; its value is the members of a rule that are stored in this layer.

    The other members of a rule are valid too, but they are dropped without a warning.
    """

    SCHEMA = frozenset(("value", "params", "protected", "description"))
    ROLE = frozenset(("value", "params", "description"))
    OWN = frozenset(("value", "params", "expired"))


class RuleReader(Struct):
    """Reads sections of one layer, and collects the warnings of all of them."""

    layer: Layer
    default_expired: int = 0  # for a user's entries without an end time of their own
    limits_names: bool = False  # to MAX_OWN_NAMES in a section
    warnings: list[str] = field(default_factory=list)
    _nodes_left: int = MAX_RULES
    _characters_left: int = MAX_OWN_NAMES
    _section: FieldPath = ()

    def section(self, value: object, path: FieldPath) -> dict[str, Any]:
        """The rules of a section, ready to store."""
        tree = read_object(value, path)
        if is_rule(tree):
            raise FieldError(path, "must contain rules and sections, and must not be a rule itself")
        self._nodes_left, self._characters_left = MAX_RULES, MAX_OWN_NAMES
        self._section = path
        return self._read_nodes(tree, path, 1, 0)

    def _read_nodes(self, tree: dict[str, Any], path: FieldPath, depth: int, prefix: int) -> dict[str, Any]:
        """``prefix`` is the length of the names that the nodes are below."""
        if depth > MAX_DEPTH:
            raise FieldError(path, f"is more than {MAX_DEPTH} names deep")
        nodes = {}
        for name, node in tree.items():
            if name in RULE_MEMBERS:
                raise FieldError(path, f"{name} is a reserved name")
            node_path = (*path, read_segment(name, path))
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise FieldError(self._section, f"has more than {MAX_RULES} rules and sections")
            if is_rule(read_object(node, node_path)):
                self._count_characters(prefix + len(name))
                nodes[name] = self._read_rule(node, node_path)
            else:
                nodes[name] = self._read_nodes(node, node_path, depth + 1, prefix + len(name) + 1)
        return nodes

    def _count_characters(self, name_length: int) -> None:
        self._characters_left -= name_length
        if self._characters_left < 0 and self.limits_names:
            expected = f"has rules with more than {MAX_OWN_NAMES} characters of names, with those of their sections"
            raise FieldError(self._section, expected)

    def _read_rule(self, node: dict[str, Any], path: FieldPath) -> dict[str, Any]:
        for name, value in node.items():
            if name not in RULE_MEMBERS and isinstance(value, dict):
                raise FieldError(path, "a rule has no rules below it")
        self.warnings.extend(unknown_field_warnings(node, RULE_MEMBERS, path))
        rule = {name: self._read_member(name, node[name], (*path, name)) for name in node if name in RULE_MEMBERS}
        if self.layer is Layer.OWN:
            rule["expired"] = rule.get("expired") or self.default_expired
        elif rule.get("expired"):
            raise FieldError((*path, "expired"), "only a user's own entries and assignments end")
        empty = {name for name in ("params", "expired") if not rule.get(name)}
        return {name: value for name, value in rule.items() if name in self.layer.value and name not in empty}

    def _read_member(self, name: str, value: object, path: FieldPath) -> Any:
        match name:
            case "value":
                return _read_scalar(value, path)
            case "params":
                return read_params(value, path)
            case "expired":
                return read_number(value, path)
            case "protected":
                return read_flag(value, path)
        return read_text(value, path)


def _read_scalar(value: object, path: FieldPath) -> Any:
    if isinstance(value, str):
        return read_text(value, path, MAX_TEXT)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise FieldError(path, "must be a string, a number, true, false or null")
