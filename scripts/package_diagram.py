"""Writes the import graph of the packages of ``sso`` as a graphviz file: ``python -m scripts.package_diagram``.

An arrow is drawn from a package to each package that it imports, unless a longer path of arrows shows it already.
"""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "sso"

# From the outside to the inside. Modules beside the packages are part of the box in which they are used.
BOXES = {
    "cli": "cli\ncommands of the operator",
    "state": "state\nsso apply and sso export",
    "backup": "backup\nsso backup and sso restore",
    "replica": "replica\nsso replica: answers from memory",
    "verification": "verification\nplayers on a game server",
    "client": "client\nfor Python programs",
    "app": "app, routes, worker, services, doctor\nputs the parts together",
    "openapi": "openapi\nthe OpenAPI document",
    "documentation": "documentation\nthe site at /docs/",
    "demo": "demo\nmails of the demo",
    "console": "console\nadmin console",
    "admin": "admin\nmanagement API",
    "personal_data": "personal_data\nexport, deletion, erasure",
    "players": "players\nguests, links, merges",
    "device": "device\ndevice authorization",
    "ssf": "ssf\nstreams of signals",
    "oauth": "oauth\nOAuth 2.0, OpenID Connect",
    "gsid": "gsid\ngame login",
    "perm": "perm\npermissions",
    "upstream": "upstream\nsign-in with other providers",
    "accounts": "accounts\nlogin, sessions, account page",
    "backchannel_logout": "backchannel_logout\nnotifications to sites",
    "branding": "branding\nname, colours, logo",
    "mail": "mail\noutbox, SMTP",
    "delivery": "delivery\nqueue with retries",
    "webhooks": "webhooks\nsends changes to addresses",
    "change_stream": "change_stream\nchanges for other programs",
    "signals": "signals\nrecorded with the change",
    "audit": "audit\nthe audit trail",
    "nodes": "nodes\nheartbeats of the nodes",
    "keys": "keys\nsigning keys",
    "serve": "serve\nsupervisor, workers, HTTP servers",
    "web": "web\nmiddleware, bodies, pages",
    "bus": "bus\nwake-ups between workers",
    "db": "db\nPostgreSQL, batches, migrations",
    "config": "config, log",
    "telemetry": "telemetry\nmetrics, traces, counters",
    "core": "core\ntokens, keys, passwords, addresses",
}
MODULES = {
    "__main__": "cli",
    "doctor": "app",
    "routes": "app",
    "worker": "app",
    "services": "app",
    "health": "app",
    "log": "config",
    "settings": "config",
    "environment": "config",
}

STYLE = """\
    rankdir=TB; bgcolor=white; nodesep=0.35; ranksep=0.45;
    node [shape=box, style="rounded,filled", fillcolor="#f1f5f9", color="#64748b", fontname="sans-serif", fontsize=12];
    edge [color="#334155", arrowsize=0.7];"""


def box_of(module: str) -> str | None:
    """The box of a dotted module name; None for a name that is no part of a box, such as ``sso`` itself."""
    name = module.removeprefix("sso.").partition(".")[0]
    name = MODULES.get(name, name)
    return name if name in BOXES else None


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


def imported(path: Path) -> Iterator[str]:
    """The modules of ``sso`` that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "sso":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def arrows() -> set[tuple[str, str]]:
    """Each pair of boxes of which the first imports the second."""
    pairs = {(box_of(name), box_of(target)) for name, path in modules() for target in imported(path)}
    return {(source, target) for source, target in pairs if source and target and source != target}


def without_shortcuts(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows without those for which there is a longer path. The graph has no cycle."""
    targets = {box: {target for source, target in pairs if source == box} for box in BOXES}

    def reachable(box: str) -> set[str]:
        return targets[box] | {further for target in targets[box] for further in reachable(target)}

    return {
        (source, target)
        for source, target in pairs
        if not any(target in reachable(other) for other in targets[source] - {target})
    }


def graph() -> str:
    boxes = "\n".join(f'    {name} [label="{label}"];'.replace("\n", "\\n") for name, label in BOXES.items())
    lines = "\n".join(f"    {source} -> {target};" for source, target in sorted(without_shortcuts(arrows())))
    return f"digraph packages {{\n{STYLE}\n{boxes}\n{lines}\n}}\n"


if __name__ == "__main__":
    sys.stdout.write(graph())
