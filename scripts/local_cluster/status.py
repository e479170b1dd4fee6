"""What the machines do: roles of the database, replication, the service's held polls and rates."""

import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from scripts.local_cluster import cluster, network, processes
from scripts.local_cluster.layout import NODES, Machine

SERVICES = ("etcd", "nats", "patroni", "sso")
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


@dataclass
class Seen:
    """What a machine says about itself at a moment."""

    at: float
    machine: Machine
    running: list[str]
    plugged: bool
    role: str
    lag: str
    held: int
    sockets: int
    requests: float


def look(machine: Machine) -> Seen:
    patroni = _get(machine, 8008, "/patroni")
    state = json.loads(patroni) if patroni.startswith("{") else {}
    xlog = state.get("xlog", {})
    lag = xlog.get("received_location", 0) - xlog.get("replayed_location", 0)
    samples = _SAMPLE.findall(_get(machine, 9100, "/metrics"))

    def total(name: str) -> float:
        return sum(float(value) for found, _, value in samples if found == name)

    return Seen(
        at=time.monotonic(),
        machine=machine,
        running=[service for service in SERVICES if processes.is_running(machine, service)],
        plugged=network.is_plugged(machine),
        role=f"{state.get('role', '-')} ({state.get('state', 'no answer')})",
        lag="-" if state.get("role") == "primary" else f"{lag} B",
        held=int(total("sso_held_polls")),
        sockets=int(total("sso_sockets")),
        requests=total("sso_request_seconds_count"),
    )


def _get(machine: Machine, port: int, path: str) -> str:
    return cluster.get(machine, port, path, "-m", "1")


def table(now: list[Seen], before: list[Seen]) -> str:
    rows = [("machine", "cable", "database", "lag", "running", "held polls", "sockets", "requests/s")]
    for seen, last in zip(now, before, strict=True):
        rate = max(0.0, (seen.requests - last.requests) / max(0.001, seen.at - last.at))
        rows.append(
            (
                seen.machine.name,
                "in" if seen.plugged else "OUT",
                seen.role,
                seen.lag,
                " ".join(seen.running) or "nothing",
                str(seen.held),
                str(seen.sockets),
                f"{rate:.0f}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def show(watch: bool) -> None:
    if not network.existing():
        raise SystemExit("there is no cluster; start it with: scripts/cluster up")
    with ThreadPoolExecutor(len(NODES)) as threads:
        before = list(threads.map(look, NODES))
        while True:
            time.sleep(1)
            now = list(threads.map(look, NODES))
            if not watch:
                return print(table(now, before))
            sys.stdout.write(f"\033[H\033[2J{table(now, before)}\n")
            sys.stdout.flush()
            before = now
