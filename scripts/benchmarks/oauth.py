"""What OAuth costs: the key set, userinfo, a refresh (each connection its own chain), the redemption of a code, and the
whole login by a browser that was never here.

The CPU time of the service and of PostgreSQL is the figure to look at: requests per second tell as much of the client,
which runs on the same machine. ``--against peers`` measures other servers by turns with ours, on the same PostgreSQL;
SSO_PEERS and PEERS_DIR say where their scripts are and where they are installed.
"""

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from scripts.benchmarks.oauth_ours import ours
from scripts.benchmarks.oauth_peers import Peers
from scripts.benchmarks.oauth_work import WORK, Target
from scripts.benchmarks.report import arguments, cpu_seconds, family, progress, show
from tests.kit import postgres

OURS = "ours"
WARM_S = 1.0


@dataclass
class Subject:
    """A server that runs, and the processes whose time counts as its own and as its database's."""

    target: Target
    pids: list[int]
    database: Callable[[], list[int]]


@dataclass
class Figures:
    per_second: list[float] = field(default_factory=list)
    us: list[float] = field(default_factory=list)
    database_us: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    failures: int = 0

    def whole_us(self) -> list[float]:
        return [own + database for own, database in zip(self.us, self.database_us, strict=True)]

    def row(self, name: str, work: str) -> dict[str, Any]:
        return {
            "server": name,
            "work": work,
            "per second": statistics.median(self.per_second),
            "least": min(self.per_second),
            "most": max(self.per_second),
            "CPU us": statistics.median(self.us),
            "database us": statistics.median(self.database_us),
            "p50 ms": statistics.median(self.p50),
            "p99 ms": statistics.median(self.p99),
            "failures": self.failures,
        }


def measure(subject: Subject, work: str, connections: int, seconds: float, into: Figures) -> None:
    load = WORK[work](subject.target, connections, seconds)
    database_before = {pid: cpu_seconds([pid]) for pid in subject.database()}
    before = cpu_seconds(subject.pids)
    tally = load()
    answers = len(tally.took)
    if not answers:
        raise SystemExit(f"nothing succeeded: {tally.failures[:1]}")
    into.per_second.append(answers / tally.seconds)
    into.us.append((cpu_seconds(subject.pids) - before) / answers * 1e6)
    into.database_us.append(sum(now - was for was, now in _still_there(database_before)) / answers * 1e6)
    into.p50.append(tally.quantile(0.5) * 1e3)
    into.p99.append(tally.quantile(0.99) * 1e3)
    into.failures += len(tally.failures)


def _still_there(before: Mapping[int, float]) -> Iterator[tuple[float, float]]:
    """PostgreSQL starts and ends processes as it likes: what those used that have ended is not known any more."""
    for pid, was in before.items():
        now = cpu_seconds([pid])
        if now >= was:
            yield was, now


@contextmanager
def our_own(dsn: str, database_pid: Callable[[], int]) -> Iterator[Subject]:
    with ours(dsn) as (server, target):
        yield Subject(target, server.workers(), lambda: family(database_pid()))


def alone(work: Sequence[str], given: argparse.Namespace) -> list[dict[str, Any]]:
    figures = {name: Figures() for name in work}
    with postgres.running() as database, our_own(database.fresh(), database.pid) as subject:
        for name in work:
            WORK[name](subject.target, given.connections, WARM_S)()
        for turn in range(given.rounds):
            for name in work:
                progress(f"round {turn + 1} of {given.rounds}, {name} …")
                measure(subject, name, given.connections, given.seconds, figures[name])
    return [figures[name].row(OURS, name) for name in work]


def compared(
    peers: Peers, names: Sequence[str], work: Sequence[str], given: argparse.Namespace
) -> list[dict[str, Any]]:
    """Each peer by turns with ours, a few seconds each: what else goes on meanwhile is the same for both."""
    figures = {(name, what): Figures() for name in names for what in work}
    beside = {(name, what): Figures() for name in names for what in work}  # ours, at the same time
    with peers.database() as base:
        databases = postgres.Postgres(f"{base}/postgres?")
        dsn = databases.fresh()
        with our_own(dsn, peers.database_pid) as mine:
            for turn, name in itertools.product(range(given.rounds), names):
                peer, _, store = name.partition(":")
                with peers.running(peer, store) as (target, pids):
                    theirs = Subject(target, pids, mine.database)
                    for what in work:
                        progress(f"round {turn + 1} of {given.rounds}, {name}, {what} …")
                        for subject in (mine, theirs) if turn == 0 else ():
                            WORK[what](subject.target, given.connections, WARM_S)()
                        measure(mine, what, given.connections, given.seconds, beside[name, what])
                        measure(theirs, what, given.connections, given.seconds, figures[name, what])
        databases.drop(dsn)
    return [
        row for what in work for name in names for row in _pair(name, what, beside[name, what], figures[name, what])
    ]


def _pair(name: str, what: str, mine: Figures, theirs: Figures) -> list[dict[str, Any]]:
    """Ours beside a peer, and the peer with how much more of the same we do: in a second, and of CPU time."""
    ratios = [ours / other for ours, other in zip(mine.per_second, theirs.per_second, strict=True)]
    pairs = zip(mine.whole_us(), theirs.whole_us(), strict=True)
    cheaper = [other / ours for ours, other in pairs]
    shown = {
        "ratio": f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})",
        "CPU ratio": f"{statistics.median(cheaper):.2f} ({min(cheaper):.2f}-{max(cheaper):.2f})",
    }
    return [mine.row(OURS, what) | dict.fromkeys(shown), theirs.row(name, what) | shown]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--work", default=",".join(WORK), help="which of: " + ", ".join(WORK))
    parser.add_argument("--against", choices=["peers"], help="measure other servers, too")
    parser.add_argument("--peers", default="node:memory,node:postgres", help="which, as script:store")
    given = parser.parse_args()
    work = [name for name in given.work.split(",") if name]
    rows = compared(Peers.find(), given.peers.split(","), work, given) if given.against else alone(work, given)
    show(rows, given.out)


if __name__ == "__main__":
    main()
