"""Measures OAuth: the key set, userinfo, a refresh (each connection has its own chain of tokens), the redemption of a
code, a whole login with a new browser, introspection and client_credentials.

``CPU ratio`` is the CPU time of service and database in relation to that of the first kind of work in the same run. By
default that is the key set, a constant response.

Compare the CPU time of the service and of PostgreSQL: requests per second also depend on the client, which runs on the
same machine. ``--against peers`` measures other servers in turns with this one, on the same PostgreSQL. SSO_PEERS names
the folder with their scripts, PEERS_DIR where they are installed. Their scripts must use the algorithm of ID tokens
that ID_TOKEN_ALGORITHM names.
"""

import argparse
import itertools
import os
from collections.abc import Sequence
from typing import Any

from scripts.benchmarks.http_clients import BenchmarkError
from scripts.benchmarks.oauth_measure import Compared, Figures, Subject, measure, row, spread
from scripts.benchmarks.oauth_peers import Peers
from scripts.benchmarks.oauth_service import service_subject
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.report import Steps, arguments, show
from sso.core.algorithms import ALGORITHMS
from tests.kit import postgres

OURS = "ours"
WARM_S = 1.0


def alone(work: Sequence[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    steps = Steps(len(work) * (options.rounds + 1))
    rounds: dict[str, list[Figures]] = {name: [] for name in work}
    with (
        postgres.running() as database,
        service_subject(database.fresh(), database.pid, options.workers, options.algorithm) as subject,
    ):
        for name in work:
            steps.next(f"warming up, {name}")
            WORK[name](subject.target, options.connections, WARM_S)()
        for turn, name in itertools.product(range(options.rounds), work):
            steps.next(f"round {turn + 1}, {name}")
            rounds[name].append(measure(subject, name, options.connections, options.seconds))
    return [{"server": OURS} | row(name, rounds[name]) | ratio(rounds[work[0]], rounds[name]) for name in work]


def ratio(baseline: Sequence[Figures], rounds: Sequence[Figures]) -> dict[str, str]:
    """Returns the column with the CPU time in relation to a baseline that was measured in the same rounds."""
    return {"CPU ratio": spread([one.whole_us / base.whole_us for base, one in zip(baseline, rounds, strict=True)])}


def compared(
    peers: Peers, names: Sequence[str], work: Sequence[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measures each peer in turns with our service, so that other load on the machine affects both alike."""
    found = {(name, what): Compared() for name in names for what in work}
    steps = Steps(options.rounds * len(names) * len(work))
    with peers.database() as base:
        databases = postgres.Postgres(f"{base}/postgres?")
        dsn = databases.fresh()
        with service_subject(dsn, peers.database_pid, options.workers, options.algorithm) as mine:
            for what in work:
                WORK[what](mine.target, options.connections, WARM_S)()
            for turn, name in itertools.product(range(options.rounds), names):
                try:
                    with peers.running(name) as (target, pids):
                        theirs = Subject(target, pids, mine.database)
                        for what in work:
                            steps.next(f"round {turn + 1}, {name}, {what}")
                            take_turns(mine, theirs, what, options, found[name, what])
                except BenchmarkError as error:
                    for what in work:
                        found[name, what].note = str(error)
        databases.drop(dsn)
    return [line for what in work for name in names for line in found[name, what].rows(OURS, name, what)]


def take_turns(mine: Subject, theirs: Subject, what: str, options: argparse.Namespace, into: Compared) -> None:
    """Warms the peer up and measures both. If the peer fails, its row gets a note instead."""
    try:
        WORK[what](theirs.target, options.connections, WARM_S)()
        other = measure(theirs, what, options.connections, options.seconds)
    except (BenchmarkError, OSError) as error:
        into.note = f"cannot: {error}"
    else:
        into.rounds.append((measure(mine, what, options.connections, options.seconds), other))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1, help="workers of our service")
    parser.add_argument("--work", default=",".join(WORK), help="kinds of work, out of: " + ", ".join(WORK))
    parser.add_argument("--against", choices=["peers"], help="also measure other servers")
    parser.add_argument(
        "--peers",
        default="node:memory,node:postgres",
        help="peers, each as a script and its arguments: node:postgres:2,authlib:2,glew:postgres,dot",
    )
    parser.add_argument("--algorithm", choices=ALGORITHMS, default=ALGORITHMS[0], help="that signs ID tokens")
    options = parser.parse_args()
    os.environ["ID_TOKEN_ALGORITHM"] = options.algorithm
    work = [name for name in options.work.split(",") if name]
    rows = compared(Peers.find(), options.peers.split(","), work, options) if options.against else alone(work, options)
    show(rows, options.out)


if __name__ == "__main__":
    main()
