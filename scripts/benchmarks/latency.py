"""Measures latencies near the capacity: an open loop with a mix of requests, at shares of the capacity of that mix.

First a closed loop measures the capacity: the operations per second with many in progress. Then requests are due at a
constant rate of 25, 50, 75, 90 and 110 % of that. A latency counts from the moment when the request was due. At 110 %
a server should answer about as many requests as before, and refuse the rest at once (503 with Retry-After).

This service is measured with the whole mix, and with the OAuth requests alone next to node-oidc-provider on the same
PostgreSQL, by turns. The peer needs SSO_PEERS and PEERS_DIR, as for ``scripts/bench oauth --against peers``. The lag of
the generator says whether it kept the rate: run this on an idle machine. The tables can be pasted into a page.
"""

import argparse
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass

from scripts.benchmarks.game_sessions import new_gsids, register
from scripts.benchmarks.http_clients import BenchmarkError
from scripts.benchmarks.latency_kinds import ALL_SHARES, OAUTH_SHARES, POLL, GameKinds, OAuthKinds
from scripts.benchmarks.latency_report import Contest, print_report
from scripts.benchmarks.latency_sockets import open_sockets
from scripts.benchmarks.machine_probe import watched_machine
from scripts.benchmarks.oauth_peers import Peers
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_target import Target, address_of
from scripts.benchmarks.open_loop.generator import Generator
from scripts.benchmarks.perm_work import build_target, own_check
from scripts.benchmarks.report import Steps, arguments
from sso.serve.process_tuning import raise_open_file_limit
from tests.kit import postgres
from tests.kit.server import Server

LEVELS = (25, 50, 75, 90, 110)
AT_ONCE = 64  # operations in progress while the capacity is measured
ANSWER_S = 10.0
HELD_S = 2.0  # from a poll to the end of its session, which wakes it
PREPARED = 100  # pages, codes and tokens before a load
CONNECTIONS = 4000
SOCKETS = 200
HEARTBEAT_S = 1
WARM_S = 2.0
PAUSE_S = 1.0  # after a level
START_S = 40.0  # to start and prepare the servers
MIN_LEVEL_S = 2.0
MAX_MINUTES = 45  # the tokens of the load are valid for an hour
MAX_POLLS_PER_SECOND = 1000  # while the capacity is measured
PRECEDENCE = -10  # of the generator before the servers: clients elsewhere would not compete with them


@dataclass(frozen=True)
class Load:
    """A server and the mix of requests that it gets."""

    contest: Contest
    generator: Generator
    oauth: OAuthKinds
    games: "Games | None" = None

    def capacity(self, seconds: float, warm_s: float = WARM_S) -> float:
        """Returns the operations per second of a closed loop."""
        self._prepare(warm_s * MAX_POLLS_PER_SECOND)
        self.generator.run_closed(AT_ONCE, self.contest.shares, warm_s)
        self._prepare(seconds * MAX_POLLS_PER_SECOND)
        return self.generator.run_closed(AT_ONCE, self.contest.shares, seconds).answered(self.contest.shares) / seconds

    def measure(self, level: int, seconds: float) -> None:
        rate = self.contest.capacity * level / 100
        self._prepare(rate * seconds * self.contest.shares.get(POLL, 0) / sum(self.contest.shares.values()))
        with self.games.sockets(self.generator) if self.games else nullcontext(), watched_machine() as machine:
            figures = self.generator.run_open(rate, self.contest.shares, seconds)
        figures.machine = machine
        self.contest.levels[level] = figures
        self.generator.turn_for(PAUSE_S)

    def _prepare(self, polls: float) -> None:
        self.oauth.renew_codes()
        if self.games:
            self.games.register(math.ceil(polls) + 1)


@dataclass(frozen=True)
class Games:
    """The game sessions of a load: they are registered beforehand, and some have a WebSocket."""

    kinds: GameKinds
    dsn: str
    address: tuple[str, int]
    sockets_count: int

    def register(self, polls: int) -> None:
        gsids = new_gsids(polls)
        register(self.dsn, gsids)
        self.kinds.add_sessions(gsids)

    @contextmanager
    def sockets(self, generator: Generator) -> Iterator[None]:
        gsids = new_gsids(self.sockets_count)
        register(self.dsn, gsids)
        with open_sockets(generator, self.address, gsids, HEARTBEAT_S):
            yield


def oauth_load(name: str, target: Target) -> Load:
    oauth = OAuthKinds(target, PREPARED)
    generator = Generator(address_of(target), oauth.workload(), answer_s=ANSWER_S, connections=CONNECTIONS)
    return Load(Contest(name, OAUTH_SHARES), generator, oauth)


def whole_load(
    name: str,
    server: Server,
    target: Target,
    *,
    prepared: int = PREPARED,
    sockets: int = SOCKETS,
    answer_s: float = ANSWER_S,
) -> Load:
    with server.client() as client:
        check = own_check(build_target(server, client))
    oauth, game_kinds = OAuthKinds(target, prepared), GameKinds(check, HELD_S)
    workload = {**oauth.workload(), **game_kinds.workload()}
    generator = Generator(address_of(target), workload, answer_s=answer_s, connections=CONNECTIONS)
    games = Games(game_kinds, server.settings["SSO_DATABASE_URL"], address_of(target), sockets)
    return Load(Contest(name, ALL_SHARES), generator, oauth, games)


def level_seconds(minutes: float, loads: int, levels: int) -> float:
    """Returns the seconds of each measurement, so that all of them end within this time."""
    measurements = loads * (levels + 1)
    overhead = START_S + loads * 2 * WARM_S + measurements * (PAUSE_S + HELD_S + 1.0)
    return max(MIN_LEVEL_S, (minutes * 60 - overhead) / measurements)


def measure(loads: Sequence[Load], levels: Sequence[int], seconds: float, deadline: float) -> None:
    """Measures the loads by turns, so that other load on the machine affects all of them alike."""
    steps = Steps(len(loads) * (1 + len(levels)))
    for load in loads:
        steps.next(f"{load.contest.name}: capacity")
        load.contest.capacity = load.capacity(seconds)
        if not load.contest.capacity:
            raise BenchmarkError(f"{load.contest.name}: nothing was answered")
    for level in levels:
        for load in loads:
            steps.next(f"{load.contest.name}: {level} % of {load.contest.capacity:,.0f} operations per second")
            if time.monotonic() + seconds < deadline:
                load.measure(level, seconds)


@contextmanager
def running_loads(options: argparse.Namespace) -> Iterator[list[Load]]:
    """Starts the servers on one PostgreSQL that writes durably."""
    with ExitStack() as stack:
        peers = None if options.without_peer else Peers.find()
        if peers:
            database = postgres.Postgres(f"{stack.enter_context(peers.database())}/postgres?")
        else:
            database = stack.enter_context(postgres.running())
            database.set_durable(True)
        settings = {"SSO_WORKERS": str(options.workers), "SSO_GSID_HEARTBEAT_S": str(HEARTBEAT_S)}
        server, target = stack.enter_context(running_service(database.fresh(), **settings))
        ours = f"this service, {options.workers} workers"
        loads = [whole_load(f"{ours}, all kinds", server, target), oauth_load(f"{ours}, OAuth only", target)]
        if peers:
            name = options.peer or f"node:postgres:{options.workers}"
            peer, _ = stack.enter_context(peers.running(name))
            loads.append(oauth_load(f"{name}, OAuth only", peer))
        for load in loads:
            stack.callback(load.generator.close)
        with suppress(OSError):  # only root may
            os.nice(PRECEDENCE)
        yield loads


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.set_defaults(seconds=None)
    parser.add_argument("--minutes", type=float, default=12.0, help="ends within this time (default: 12)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="workers; processes of the peer")
    parser.add_argument("--levels", default=",".join(map(str, LEVELS)), help="percents of the capacity")
    parser.add_argument("--peer", help="a peer with its arguments (default: node:postgres:WORKERS)")
    parser.add_argument("--without-peer", action="store_true", help="measure this service alone")
    options = parser.parse_args()
    if options.minutes > MAX_MINUTES:
        parser.error(f"--minutes: expected at most {MAX_MINUTES}")
    levels = [int(level) for level in options.levels.split(",")]
    deadline = time.monotonic() + options.minutes * 60
    busy = os.getloadavg()[0]
    raise_open_file_limit()
    with running_loads(options) as loads:
        seconds = options.seconds or level_seconds(options.minutes, len(loads), len(levels))
        try:
            measure(loads, levels, seconds, deadline)
        finally:  # also of an interrupted run
            print_report([load.contest for load in loads], levels, seconds, busy, options.out)


if __name__ == "__main__":
    main()
