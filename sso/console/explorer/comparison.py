"""Differences of two sides of the explorer, and the tree of rules of one side."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, field

from sso.console.explorer.permissions import ReasonedRule, UserPermissions


class Difference(StrEnum):
    LEFT = "left"  # only the first side has it
    RIGHT = "right"
    EXTRA = "extra"  # both have it, with other parameters or another end
    REASONS = "reasons"  # both have it, for other reasons
    NONE = "none"


class ComparedRule(Struct, frozen=True):
    name: str
    left: ReasonedRule | None
    right: ReasonedRule | None

    @property
    def branch(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def project(self) -> str:
        rule = self.left or self.right
        return rule.project if rule else ""

    @property
    def difference(self) -> Difference:
        if self.right is None:
            return Difference.LEFT
        if self.left is None:
            return Difference.RIGHT
        if self.left.extra != self.right.extra:
            return Difference.EXTRA
        return Difference.NONE if self.left.reasons == self.right.reasons else Difference.REASONS


class ComparedRole(Struct, frozen=True):
    name: str
    difference: Difference


def compare_rules(left: UserPermissions, right: UserPermissions) -> list[ComparedRule]:
    names = sorted(left.rules.keys() | right.rules.keys())
    return [ComparedRule(name, left.rules.get(name), right.rules.get(name)) for name in names]


def compare_roles(left: UserPermissions, right: UserPermissions) -> list[ComparedRole]:
    def difference(name: str) -> Difference:
        if name not in right.roles:
            return Difference.LEFT
        return Difference.NONE if name in left.roles else Difference.RIGHT

    return [ComparedRole(name, difference(name)) for name in sorted({*left.roles, *right.roles})]


class RuleBranch(Struct):
    """A branch of the tree: ``private_data`` with ``chat`` with the rule ``kick``."""

    name: str
    branches: dict[str, "RuleBranch"] = field(default_factory=dict)
    rules: list[tuple[str, ReasonedRule]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.rules) + sum(branch.count for branch in self.branches.values())


def rule_tree(rules: Iterable[ReasonedRule]) -> RuleBranch:
    """Returns the tree of the rules. A branch whose only content is another branch is joined with it."""
    root = RuleBranch("")
    for rule in rules:
        *parts, leaf = rule.name.split(".")
        branch = root
        for part in parts:
            branch = branch.branches.setdefault(part, RuleBranch(part))
        branch.rules.append((leaf, rule))
    return RuleBranch("", {name: _joined(branch) for name, branch in root.branches.items()}, root.rules)


def _joined(branch: RuleBranch) -> RuleBranch:
    while len(branch.branches) == 1 and not branch.rules:
        (inner,) = branch.branches.values()
        branch = RuleBranch(f"{branch.name}.{inner.name}", inner.branches, inner.rules)
    return RuleBranch(branch.name, {name: _joined(one) for name, one in branch.branches.items()}, branch.rules)
