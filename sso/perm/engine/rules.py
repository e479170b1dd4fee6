"""Rules as flat paths, and the sources that each rule comes from.

The path of a rule is its name in a ``list``: ``private_data.chat.mute``. A user holds a rule while at least one source
gives it, and until the last of these sources ends. The parameters are those of the highest layer that gives the rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sso.perm.engine import params
from sso.perm.engine.reserved_names import is_segment

LISTED_SECTIONS = ("private_data", "public_data")
MAX_DEPTH = 32  # names in a path, below its section

SCHEMA, ROLE, OWN = "schema", "role", "own"  # the layers, from the lowest to the highest
_RANK = {SCHEMA: 0, ROLE: 1, OWN: 2}


class RuleSource(NamedTuple):
    """One source of a rule that a user holds."""

    layer: str
    role: str  # the name of the role; empty in the other layers
    params: tuple[str, ...]
    ends: int  # Unix time; 0 if it never ends


class RuleEntry(NamedTuple):
    """A rule as one layer states it."""

    path: str
    listed: bool  # whether its value gives the rule
    params: tuple[str, ...]
    expired: int


def is_listed(value: object) -> bool:
    """Returns whether a value gives its rule: any scalar does, except false, null, 0 and the empty string."""
    return bool(value) and not isinstance(value, dict | list)


def is_rule(node: Mapping[str, Any]) -> bool:
    """Returns whether a node of a tree is a rule; any other node is a section of named nodes."""
    return "value" in node and not isinstance(node["value"], dict)


def rule_nodes(tree: Mapping[str, Any], path: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every rule of a tree with its path. Invalid names are skipped here too, because a path can be a right."""
    for name, node in tree.items():
        if isinstance(node, dict) and is_segment(name):
            node_path = f"{path}.{name}"
            if is_rule(node):
                yield node_path, node
            elif depth < MAX_DEPTH - 1:
                yield from rule_nodes(node, node_path, depth + 1)


def rule_entries(tree: Mapping[str, Any], path: str) -> Iterator[RuleEntry]:
    for node_path, node in rule_nodes(tree, path):
        expired = node.get("expired")
        yield RuleEntry(
            node_path,
            is_listed(node["value"]),
            params.split(node.get("params")),
            expired if type(expired) is int else 0,
        )


def section_of(path: str) -> str:
    return path.partition(".")[0]


def without_section(path: str) -> str:
    """Returns the path as ``list_short`` shows it, which is the same for public and private data."""
    return path.partition(".")[2]


def merged_params(source_groups: Iterable[tuple[RuleSource, ...]]) -> tuple[str, ...]:
    """Returns the parameters of a list entry, from the sources of each path that the entry stands for.

    For each path, the highest layer replaces the others. Parameters of several roles merge in the order of their names.
    """
    deciding: list[RuleSource] = []
    for sources in source_groups:
        highest = max(_RANK[source.layer] for source in sources)
        deciding += [source for source in sources if _RANK[source.layer] == highest]
    return params.merge(source.params for source in sorted(deciding, key=lambda s: (_RANK[s.layer], s.role)))


def latest_end(ends: Iterable[int]) -> int:
    """The last of several end times; 0 ("never ends") if one of them is 0."""
    times = list(ends)
    return 0 if 0 in times else max(times, default=0)


def earliest_end(ends: Iterable[int]) -> int:
    """Returns the first of several end times; 0 if none of them ends."""
    return min((end for end in ends if end), default=0)
