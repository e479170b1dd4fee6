"""How long clients wait when a part of the cluster fails: one event after another, each with the same clients."""

import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from scripts.local_cluster import cluster, processes
from scripts.local_cluster.cluster import say
from scripts.local_cluster.layout import NODES, PROXY, Machine
from scripts.local_cluster.probe import Notes

WARM_UP_S = 5.0
AFTER_S = 4.0
UNPLUGGED_S = 35.0  # longer than the database needs to choose another primary


@dataclass(frozen=True)
class Outage:
    gap_s: float  # the longest time without a successful write
    slowest_s: float  # write
    polls_s: float  # until the last broken poll was held again
    broken_polls: int
    errors: Counter[str]

    def __str__(self) -> str:
        errors = ", ".join(f"{count} x {name}" for name, count in sorted(self.errors.items())) or "none"
        polls = f"{self.polls_s:5.1f} s ({self.broken_polls:2})" if self.broken_polls else "       none"
        return f"{self.gap_s:7.1f} s {self.slowest_s:8.1f} s  {polls}  {errors}"


def run(rounds: int) -> None:
    say("no writes: the longest time without a successful write; polls: until all broken polls were held again")
    print(f"{'event':34}{'no writes':>9}{'slowest':>11}{'polls':>13}  errors")
    for number in range(rounds):
        for name, event in EVENTS:
            cluster.wait_until_healthy()
            print(f"{name:34}{measure(event, number)}", flush=True)


def measure(event: Callable[[int], None], number: int) -> Outage:
    program = (sys.executable, "-m", "scripts.local_cluster.probe")
    clients = subprocess.Popen(
        processes.command(PROXY, *program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    time.sleep(WARM_UP_S)
    began = time.monotonic()
    event(number)
    cluster.wait_until_healthy()
    time.sleep(AFTER_S)
    output, _ = clients.communicate("")
    return summarize(Notes(**json.loads(output)), began)


def summarize(notes: Notes, began: float) -> Outage:
    """``began`` is the moment of the event; what was before it is not counted."""
    ends = [began, *sorted(end for _, end in notes.writes if end >= began)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    slowest = [end - start for start, end in notes.writes if end >= began]
    broken = [moment for moment in notes.polls_broken if moment >= began]
    held_again = [moment - began for moment in notes.polls_held_again if moment >= began]
    errors = Counter(name for moment, name in notes.errors if moment >= began)
    return Outage(max(gaps, default=0), max(slowest, default=0), max(held_again, default=0), len(broken), errors)


def kill_node(number: int) -> None:
    cluster.kill(NODES[number % len(NODES)], "sso")
    time.sleep(5)
    cluster.start(NODES[number % len(NODES)])


def kill_postmaster(_: int) -> None:
    cluster.kill(cluster.wait_for_primary(), "postgres")


def unplug_primary(_: int) -> None:
    _unplug(cluster.wait_for_primary())


def unplug_standby(_: int) -> None:
    primary = cluster.wait_for_primary()
    _unplug(next(node for node in NODES if node != primary))


def switchover(_: int) -> None:
    cluster.switchover()


def kill_nats(number: int) -> None:
    cluster.kill(NODES[number % len(NODES)], "nats")
    time.sleep(5)
    cluster.start(NODES[number % len(NODES)])


EVENTS: tuple[tuple[str, Callable[[int], None]], ...] = (
    ("service of a machine killed", kill_node),
    ("NATS of a machine killed", kill_nats),
    ("switchover", switchover),
    ("postmaster of the primary killed", kill_postmaster),
    ("machine of a standby unplugged", unplug_standby),
    ("machine of the primary unplugged", unplug_primary),
)


def _unplug(machine: Machine) -> None:
    cluster.unplug(machine)
    time.sleep(UNPLUGGED_S)
    cluster.plug(machine)
