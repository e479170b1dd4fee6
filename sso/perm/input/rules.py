"""Trees of rules in requests: the sections of an application's schema, of a role, or of a user's own data.

A node whose ``value`` is not an object is a rule; any other node is a section of named nodes. The members of a rule are
reserved names, so a rule and a section cannot be confused. A rule has no rules below it.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sso.perm.engine.reserved_names import RULE_MEMBERS
from sso.perm.engine.rules import MAX_DEPTH, is_rule, section_of
from sso.perm.errors import InvalidInput
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


class Layer(Enum):
    """The layer that the rules belong to; its value is the members of a rule that are stored in this layer.

    The other members of a rule are valid too, but they are dropped without a warning.
    """

    SCHEMA = frozenset(("value", "params", "protected", "description"))
    ROLE = frozenset(("value", "params", "description"))
    OWN = frozenset(("value", "params", "expired"))


@dataclass
class RuleReader:
    """Reads sections of one layer, and collects the warnings of all of them."""

    layer: Layer
    default_expired: int = 0  # for a user's entries without an end time of their own
    warnings: list[str] = field(default_factory=list)
    _nodes_left: int = MAX_RULES

    def section(self, value: object, where: str) -> dict[str, Any]:
        """The rules of a section, ready to store."""
        tree = read_object(value, where)
        if is_rule(tree):
            raise InvalidInput(f"{where}: must contain rules and sections, and must not be a rule itself")
        self._nodes_left = MAX_RULES
        return self._read_nodes(tree, where, 1)

    def _read_nodes(self, tree: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{where}: is more than {MAX_DEPTH} names deep")
        nodes = {}
        for name, node in tree.items():
            if name in RULE_MEMBERS:
                raise InvalidInput(f"{where}: {name} is a reserved name")
            path = f"{where}.{read_segment(name, where)}"
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise InvalidInput(f"{section_of(where)}: has more than {MAX_RULES} rules and sections")
            if is_rule(read_object(node, path)):
                nodes[name] = self._read_rule(node, path)
            else:
                nodes[name] = self._read_nodes(node, path, depth + 1)
        return nodes

    def _read_rule(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        for name, value in node.items():
            if name not in RULE_MEMBERS and isinstance(value, dict):
                raise InvalidInput(f"{where}: a rule has no rules below it")
        self.warnings.extend(unknown_field_warnings(node, RULE_MEMBERS, where))
        rule = {name: self._read_member(name, node[name], f"{where}.{name}") for name in node if name in RULE_MEMBERS}
        if self.layer is Layer.OWN:
            rule["expired"] = rule.get("expired") or self.default_expired
        elif rule.get("expired"):
            raise InvalidInput(f"{where}.expired: only a user's own entries and assignments end")
        empty = {name for name in ("params", "expired") if not rule.get(name)}
        return {name: value for name, value in rule.items() if name in self.layer.value and name not in empty}

    def _read_member(self, name: str, value: object, where: str) -> Any:
        match name:
            case "value":
                return _read_scalar(value, where)
            case "params":
                return read_params(value, where)
            case "expired":
                return read_number(value, where)
            case "protected":
                return read_flag(value, where)
        return read_text(value, where)


def _read_scalar(value: object, where: str) -> Any:
    if isinstance(value, str):
        return read_text(value, where, MAX_TEXT)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise InvalidInput(f"{where}: must be a string, a number, true, false or null")
