"""Read a section of rules: of an application's schema, of a role, or of a user's own data.

A node whose ``value`` is no object is a rule; any other node is a section of named nodes. The members of a rule are
reserved names, so that the two can never be confused, and a rule has nothing below it.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sso.perm.engine.rules import DEPTH_MOST, is_rule
from sso.perm.errors import Invalid
from sso.perm.input import kinds
from sso.perm.names import RULE_MEMBERS, segment
from sso.perm.params import read_params

RULES_MOST = 10_000  # per section
VALUE_MOST = 1024


class Layer(Enum):
    """Who speaks, and which members of a rule are stored. The others are known, and dropped without a word."""

    SCHEMA = frozenset(("value", "params", "protected", "description"))
    ROLE = frozenset(("value", "params", "description"))
    OWN = frozenset(("value", "params", "expired"))


@dataclass
class Reader:
    """Reads sections; collects the warnings of all of them."""

    layer: Layer
    default_expired: int = 0  # for a user's entries without their own
    warnings: list[str] = field(default_factory=list)
    _left: int = RULES_MOST

    def section(self, value: object, where: str) -> dict[str, Any]:
        tree = kinds.an_object(value, where)
        if is_rule(tree):
            raise Invalid(f"{where}: holds rules and sections, it is no rule itself")
        self._left = RULES_MOST
        return self._nodes(tree, where, 1)

    def _nodes(self, tree: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        if depth > DEPTH_MOST:
            raise Invalid(f"{where}: is more than {DEPTH_MOST} names deep")
        found = {}
        for name, node in tree.items():
            if name in RULE_MEMBERS:
                raise Invalid(f"{where}: {name} is a reserved name")
            here = f"{where}.{segment(name, where)}"
            self._left -= 1
            if self._left < 0:
                raise Invalid(f"{where.partition('.')[0]}: has more than {RULES_MOST} rules and sections")
            if is_rule(kinds.an_object(node, here)):
                found[name] = self._rule(node, here)
            else:
                found[name] = self._nodes(node, here, depth + 1)
        return found

    def _rule(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        for name, value in node.items():
            if name not in RULE_MEMBERS and isinstance(value, dict):
                raise Invalid(f"{where}: a rule has no rules below it")
        self.warnings.extend(kinds.unknown(node, RULE_MEMBERS, where))
        rule = {name: self._member(name, node[name], f"{where}.{name}") for name in node if name in RULE_MEMBERS}
        if self.layer is Layer.OWN:
            rule["expired"] = rule.get("expired") or self.default_expired
        elif rule.get("expired"):
            raise Invalid(f"{where}.expired: only a user's own entries and assignments end")
        empty = {name for name in ("params", "expired") if not rule.get(name)}
        return {name: value for name, value in rule.items() if name in self.layer.value and name not in empty}

    def _member(self, name: str, value: object, where: str) -> Any:
        match name:
            case "value":
                return _scalar(value, where)
            case "params":
                return read_params(value, where)
            case "expired":
                return kinds.number(value, where)
            case "protected":
                return kinds.flag(value, where)
        return kinds.text(value, where)


def _scalar(value: object, where: str) -> Any:
    if isinstance(value, str):
        return kinds.text(value, where, VALUE_MOST)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise Invalid(f"{where}: must be a string, a number, true, false or null")
