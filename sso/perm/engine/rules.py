"""Rules as flat paths, and where each one comes from.

A rule's path is its name in a ``list``: ``private_data.chat.mute``. A rule is held while at least one source says so,
and it lives as long as the longest-lived of them. Its parameters are those of the highest layer that gives it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sso.perm.engine import params
from sso.perm.names import is_segment

LISTED_SECTIONS = ("private_data", "public_data")
MAX_DEPTH = 32  # names in a path, below its section

SCHEMA, ROLE, OWN = "schema", "role", "own"  # the layers, from the lowest to the highest
_RANK = {SCHEMA: 0, ROLE: 1, OWN: 2}


class RuleSource(NamedTuple):
    """One reason why a rule is held."""

    layer: str
    role: str  # the name of the role, if it is one
    params: tuple[str, ...]
    ends: int  # Unix time, 0: never


class RuleEntry(NamedTuple):
    """A rule as one layer states it."""

    path: str
    listed: bool  # its value says yes
    params: tuple[str, ...]
    expired: int


def is_listed(value: object) -> bool:
    """Any scalar counts as yes, except false, null, 0 and the empty string."""
    return bool(value) and not isinstance(value, dict | list)


def is_rule(node: Mapping[str, Any]) -> bool:
    return "value" in node and not isinstance(node["value"], dict)


def nodes(tree: Mapping[str, Any], path: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every rule of a section with its path. Names are checked here once more: a path is what a right hangs on."""
    for name, node in tree.items():
        if isinstance(node, dict) and is_segment(name):
            here = f"{path}.{name}"
            if is_rule(node):
                yield here, node
            elif depth < MAX_DEPTH - 1:
                yield from nodes(node, here, depth + 1)


def entries(tree: Mapping[str, Any], path: str) -> Iterator[RuleEntry]:
    for here, node in nodes(tree, path):
        expired = node.get("expired")
        yield RuleEntry(
            here,
            is_listed(node["value"]),
            params.split(node.get("params")),
            expired if type(expired) is int else 0,
        )


def short(path: str) -> str:
    """The path without its section: what ``list_short`` shows, the same for public and private data."""
    return path.partition(".")[2]


def merged_params(paths: Iterable[tuple[RuleSource, ...]]) -> tuple[str, ...]:
    """The parameters of an entry, from the sources of each path that it stands for.

    Only parameters of roles merge, in the order of the role names: the highest layer of a path replaces the others.
    """
    deciding: list[RuleSource] = []
    for sources in paths:
        highest = max(_RANK[source.layer] for source in sources)
        deciding += [source for source in sources if _RANK[source.layer] == highest]
    return params.merge(source.params for source in sorted(deciding, key=lambda s: (_RANK[s.layer], s.role)))


def longest(ends: Iterable[int]) -> int:
    """The end of what lives as long as one of these does: 0 when one of them never ends."""
    found = list(ends)
    return 0 if 0 in found else max(found, default=0)


def earliest(ends: Iterable[int]) -> int:
    """The first end of all; 0 when none of them ends."""
    return min((end for end in ends if end), default=0)
