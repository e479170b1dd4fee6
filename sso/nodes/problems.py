"""What is wrong with the nodes of a database, with advice."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from sso.nodes.node_list import MAX_CLOCK_OFFSET_S, Node


class NodeProblem(Struct, frozen=True):
    name: str
    detail: str
    advice: str
    warning: bool = True  # False if requests fail until it is solved


def node_problems(nodes: Sequence[Node]) -> Iterator[NodeProblem]:
    alive = [node for node in nodes if not node.is_silent]
    yield from _silent(nodes)
    yield from _different(alive)
    yield from _master_keys(alive)
    for node in alive:
        if len(node.hosts) > 1:
            detail = f"the nodes on {' and '.join(node.hosts)} are both named {node.name}"
            yield NodeProblem("node names", detail, "set SSO_NODE_NAME to different names", warning=False)
        if abs(node.clock_offset_s) > MAX_CLOCK_OFFSET_S:
            detail = f"the clock of {node.name} differs from the database's by {node.clock_offset_s:+.1f} s"
            yield NodeProblem("node clocks", detail, "run a time service (chrony, systemd-timesyncd) on that machine")


def lacks_key(node: Node, key_id: str) -> bool:
    """Whether a worker of the node cannot decrypt what this master key has encrypted."""
    return any(key_id not in keys for keys in node.master_keys)


def _silent(nodes: Sequence[Node]) -> Iterator[NodeProblem]:
    for node in nodes:
        if node.is_silent:
            yield NodeProblem(
                "silent node",
                f"{node.name} has sent no heartbeat for {node.age_s:.0f} s",
                "look at its log and its connection to the database; a node that is gone is forgotten after a day",
            )
        elif node.workers < node.expected_workers:
            detail = f"{node.name} has {node.workers} of {node.expected_workers} workers"
            yield NodeProblem("workers", detail, "look at its log: a worker hangs, or cannot reach the database")


def _different(alive: Sequence[Node]) -> Iterator[NodeProblem]:
    versions = _by_value((version, node.name) for node in alive for version in node.versions)
    if len(versions) > 1:
        advice = "finish the upgrade: replace the nodes with the older version"
        yield NodeProblem("node versions", f"they differ: {_listed(versions)}", advice)
    base_urls = _by_value((base_url, node.name) for node in alive for base_url in node.base_urls)
    if len(base_urls) > 1:
        advice = "set SSO_BASE_URL to the same value on all nodes: they reject each other's tokens"
        yield NodeProblem("base URLs of nodes", f"they differ: {_listed(base_urls)}", advice, warning=False)


def _master_keys(alive: Sequence[Node]) -> Iterator[NodeProblem]:
    first = _by_value((keys[0], node.name) for node in alive for keys in node.master_keys)
    if len(first) < 2:
        return
    unreadable = any(lacks_key(node, key_id) for node in alive for key_id in first)
    advice = (
        "give all keys to all nodes: set SSO_SECRET_KEY to OLD,NEW everywhere before any node gets NEW,OLD"
        if unreadable
        else "finish the change: set SSO_SECRET_KEY to NEW,OLD on all nodes, then run `sso key reseal`"
    )
    yield NodeProblem("master keys of nodes", f"they differ: {_listed(first)}", advice, warning=not unreadable)


def _by_value(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for value, name in pairs:
        if name not in names.setdefault(value, []):
            names[value].append(name)
    return names


def _listed(names: dict[str, list[str]]) -> str:
    return "; ".join(f"{value} ({', '.join(names[value])})" for value in sorted(names))
