"""Trees of rules as a list of rules with paths, and what is left of the tree without them."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from sso.perm.engine.reserved_names import RULE_MEMBERS, is_segment
from sso.perm.engine.rules import MAX_DEPTH, is_rule


class ListedRule(Struct, frozen=True):
    section: str
    names: tuple[str, ...]
    members: Mapping[str, Any]  # value, params, …

    @property
    def path(self) -> str:
        return ".".join(self.names)


class PathTaken(Exception):
    """Another rule, or something that is no section, is at the path of a rule."""

    def __init__(self, rule: ListedRule) -> None:
        self.rule = rule


def split_rules(document: Mapping[str, Any], sections: Iterable[str]) -> tuple[list[ListedRule], dict[str, Any]]:
    """Returns the rules of these sections that have a path, and the document without them."""
    rules: list[ListedRule] = []
    rest: dict[str, Any] = {}
    for name, tree in document.items():
        if name in sections and isinstance(tree, dict) and tree and not is_rule(tree):
            if left := _split(tree, name, (), rules):
                rest[name] = left
        else:
            rest[name] = tree
    return rules, rest


def _split(tree: Mapping[str, Any], section: str, path: tuple[str, ...], rules: list[ListedRule]) -> dict[str, Any]:
    """Adds the rules of a tree to ``rules``, and returns what is left of the tree."""
    rest: dict[str, Any] = {}
    for name, node in tree.items():
        names = (*path, name)
        has_path = is_segment(name) and name not in RULE_MEMBERS and len(names) <= MAX_DEPTH
        if not has_path or not isinstance(node, dict) or not node:
            rest[name] = node
        elif is_rule(node):
            rules.append(ListedRule(section, names, node))
        elif left := _split(node, section, names, rules):
            rest[name] = left
    return rest


def join_rules(rules: Iterable[ListedRule], rest: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `split_rules`. Raises PathTaken."""
    document: dict[str, Any] = copy.deepcopy(dict(rest))
    for rule in rules:
        node: Any = document
        for name in (rule.section, *rule.names[:-1]):
            node = node.setdefault(name, {})
            if not isinstance(node, dict):
                raise PathTaken(rule)
        if rule.names[-1] in node:
            raise PathTaken(rule)
        node[rule.names[-1]] = dict(rule.members)
    return document
