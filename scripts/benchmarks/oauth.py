"""What OAuth costs: the key set, userinfo, a refresh (each connection its own chain), the redemption of a code, and the
whole login by a browser that was never here.

The CPU time of the service and of PostgreSQL is the figure to look at: requests per second tell as much of the client,
which runs on the same machine. ``--against peers`` measures other servers by turns with ours, on the same PostgreSQL;
SSO_PEERS and PEERS_DIR say where their scripts are and where they are installed.
"""

import argparse
import itertools
from collections.abc import Sequence
from typing import Any

from scripts.benchmarks.http_clients import Unable
from scripts.benchmarks.oauth_measure import Compared, Subject, measure, row
from scripts.benchmarks.oauth_ours import our_own
from scripts.benchmarks.oauth_peers import Peers
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.report import arguments, progress, show
from tests.kit import postgres

OURS = "ours"
WARM_S = 1.0


def alone(work: Sequence[str], given: argparse.Namespace) -> list[dict[str, Any]]:
    with (
        postgres.running() as database,
        our_own(database.fresh(), database.pid, given.workers) as subject,
    ):
        for name in work:
            WORK[name](subject.target, given.connections, WARM_S)()
        rounds = []
        for turn in range(given.rounds):
            progress(f"round {turn + 1} of {given.rounds} …")
            rounds.append({name: measure(subject, name, given.connections, given.seconds) for name in work})
    return [{"server": OURS} | row(name, [figures[name] for figures in rounds]) for name in work]


def compared(
    peers: Peers, names: Sequence[str], work: Sequence[str], given: argparse.Namespace
) -> list[dict[str, Any]]:
    """Each peer by turns with ours, a few seconds each: what else goes on meanwhile is the same for both."""
    found = {(name, what): Compared() for name in names for what in work}
    with peers.database() as base:
        databases = postgres.Postgres(f"{base}/postgres?")
        dsn = databases.fresh()
        with our_own(dsn, peers.database_pid, given.workers) as mine:
            for what in work:
                WORK[what](mine.target, given.connections, WARM_S)()
            for turn, name in itertools.product(range(given.rounds), names):
                try:
                    with peers.running(name) as (target, pids):
                        theirs = Subject(target, pids, mine.database)
                        for what in work:
                            progress(f"round {turn + 1} of {given.rounds}, {name}, {what} …")
                            take_turns(mine, theirs, what, given, found[name, what])
                except Unable as error:
                    for what in work:
                        found[name, what].note = str(error)
        databases.drop(dsn)
    return [line for what in work for name in names for line in found[name, what].rows(OURS, name, what)]


def take_turns(mine: Subject, theirs: Subject, what: str, given: argparse.Namespace, into: Compared) -> None:
    """A peer was started just now, and warms up. What it cannot do is told in its place."""
    try:
        WORK[what](theirs.target, given.connections, WARM_S)()
        other = measure(theirs, what, given.connections, given.seconds)
    except (Unable, OSError) as error:
        into.note = f"cannot: {error}"
    else:
        into.rounds.append((measure(mine, what, given.connections, given.seconds), other))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1, help="of ours")
    parser.add_argument("--work", default=",".join(WORK), help="which of: " + ", ".join(WORK))
    parser.add_argument("--against", choices=["peers"], help="measure other servers, too")
    parser.add_argument(
        "--peers",
        default="node:memory,node:postgres",
        help="which, as a script and what it is started with: node:postgres:2,authlib:2,glew:postgres,dot",
    )
    given = parser.parse_args()
    work = [name for name in given.work.split(",") if name]
    rows = compared(Peers.find(), given.peers.split(","), work, given) if given.against else alone(work, given)
    show(rows, given.out)


if __name__ == "__main__":
    main()
