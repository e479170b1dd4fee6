"""The nodes that have written heartbeats, and what is wrong with them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from sso.db.database import Database
from sso.nodes.heartbeat import SILENT_S
from sso.nodes.installation_store import fetch_workers, read_workers

MAX_CLOCK_OFFSET_S = 1.0


class Node(Struct, frozen=True):
    """A node. If it is silent, its values come from its last heartbeats."""

    name: str
    is_silent: bool
    age_s: float  # since the last heartbeat
    uptime_s: float  # how long the oldest worker has run
    workers: int  # that are alive
    expected_workers: int
    held_polls: int
    sockets: int
    clock_offset_s: float  # the largest one among the workers
    hosts: tuple[str, ...]
    versions: tuple[str, ...]
    schema_versions: tuple[str, ...]
    base_urls: tuple[str, ...]
    master_keys: tuple[tuple[str, ...], ...]  # ids of each worker's keys, the one that encrypts first


def read_nodes(dsn: str) -> list[Node]:
    """Returns the nodes by name. A database of an older version has none."""
    return _nodes(fetch_workers(dsn))


async def load_nodes(database: Database) -> list[Node]:
    """Like `read_nodes`, on an open database whose schema is up to date."""
    return _nodes(await read_workers(database))


def _nodes(rows: Sequence[dict[str, Any]]) -> list[Node]:
    names = sorted({row["node"] for row in rows})
    return [_node(name, [row for row in rows if row["node"] == name]) for name in names]


def _node(name: str, rows: Sequence[dict[str, Any]]) -> Node:
    """``rows`` begin with the latest heartbeat."""
    alive = [row for row in rows if row["age"] <= SILENT_S]
    seen = alive or rows
    return Node(
        name=name,
        is_silent=not alive,
        age_s=float(rows[0]["age"]),
        uptime_s=float(max(row["uptime"] for row in seen)),
        workers=len(alive),
        expected_workers=rows[0]["workers"],
        held_polls=sum(row["held_polls"] for row in alive),
        sockets=sum(row["sockets"] for row in alive),
        clock_offset_s=float(max((row["clock_offset"] for row in seen), key=abs)),
        hosts=_distinct(row["host"] for row in seen),
        versions=_distinct(row["version"] for row in seen),
        schema_versions=_distinct(row["schema_version"] for row in seen),
        base_urls=_distinct(row["base_url"] for row in seen),
        master_keys=_distinct(tuple(row["master_keys"]) for row in seen),
    )


def notes_on(node: Node, nodes: Sequence[Node]) -> list[str]:
    """Returns what an operator should know about a node, compared with the others."""
    if node.is_silent:
        return [f"silent for {node.age_s:.0f} s"]
    notes = []
    if node.workers < node.expected_workers:
        notes.append(f"{node.workers} of {node.expected_workers} workers")
    if abs(node.clock_offset_s) > MAX_CLOCK_OFFSET_S:
        notes.append(f"clock {node.clock_offset_s:+.1f} s")
    if len(node.hosts) > 1:
        notes.append(f"same name on {' and '.join(node.hosts)}")
    alive = [other for other in nodes if not other.is_silent]
    for what, values in (("version", "versions"), ("base URL", "base_urls"), ("master key", "master_keys")):
        if set(getattr(node, values)) != {_usual(value for other in alive for value in getattr(other, values))}:
            notes.append(f"another {what} than other nodes")
    return notes


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _usual(values: Iterable[Any]) -> Any:
    """Returns the most frequent value; of several, the greatest."""
    return max(Counter(values).items(), key=lambda item: (item[1], item[0]))[0]
