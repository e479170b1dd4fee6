"""Read a section of rules: of an application's schema, of a role, or of a user's own data.

A node whose ``value`` is no object is a rule; any other node is a section of named nodes. The members of a rule are
reserved names, so that the two can never be confused, and a rule has nothing below it.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sso.perm.engine.names import RULE_MEMBERS
from sso.perm.engine.rules import MAX_DEPTH, is_rule
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_segment
from sso.perm.input.params import read_params

MAX_RULES = 10_000  # per section
MAX_VALUE = 1024


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
    _left: int = MAX_RULES

    def section(self, value: object, where: str) -> dict[str, Any]:
        tree = validators.an_object(value, where)
        if is_rule(tree):
            raise InvalidInput(f"{where}: holds rules and sections, it is no rule itself")
        self._left = MAX_RULES
        return self._nodes(tree, where, 1)

    def _nodes(self, tree: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{where}: is more than {MAX_DEPTH} names deep")
        found = {}
        for name, node in tree.items():
            if name in RULE_MEMBERS:
                raise InvalidInput(f"{where}: {name} is a reserved name")
            here = f"{where}.{read_segment(name, where)}"
            self._left -= 1
            if self._left < 0:
                raise InvalidInput(f"{where.partition('.')[0]}: has more than {MAX_RULES} rules and sections")
            if is_rule(validators.an_object(node, here)):
                found[name] = self._rule(node, here)
            else:
                found[name] = self._nodes(node, here, depth + 1)
        return found

    def _rule(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        for name, value in node.items():
            if name not in RULE_MEMBERS and isinstance(value, dict):
                raise InvalidInput(f"{where}: a rule has no rules below it")
        self.warnings.extend(validators.unknown(node, RULE_MEMBERS, where))
        rule = {name: self._member(name, node[name], f"{where}.{name}") for name in node if name in RULE_MEMBERS}
        if self.layer is Layer.OWN:
            rule["expired"] = rule.get("expired") or self.default_expired
        elif rule.get("expired"):
            raise InvalidInput(f"{where}.expired: only a user's own entries and assignments end")
        empty = {name for name in ("params", "expired") if not rule.get(name)}
        return {name: value for name, value in rule.items() if name in self.layer.value and name not in empty}

    def _member(self, name: str, value: object, where: str) -> Any:
        match name:
            case "value":
                return _scalar(value, where)
            case "params":
                return read_params(value, where)
            case "expired":
                return validators.number(value, where)
            case "protected":
                return validators.flag(value, where)
        return validators.text(value, where)


def _scalar(value: object, where: str) -> Any:
    if isinstance(value, str):
        return validators.text(value, where, MAX_VALUE)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise InvalidInput(f"{where}: must be a string, a number, true, false or null")
