"""Measures game sessions: many held polls at once, the time to accept them, memory and CPU time of each, and the time
from a confirmation to the response. Also the effect on other requests: userinfo over a few connections, before the
polls ("alone") and while they are held ("meanwhile").

Raw sockets of this process hold the polls. "sent" is the time to send all requests; "accepted" cannot be less. This
process also confirms the logins, with the statement that the page uses; for the server this is a login on another
worker.
"""

import argparse
import random
import select
import socket
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import trio

from scripts.benchmarks.game_sessions import new_gsids, poll, register
from scripts.benchmarks.http_clients import Tally
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_work import userinfo
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, private_kb, show
from sso.accounts.model import User
from sso.bus.wiring import build_bus
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.session_store import GameSessionStore
from sso.log import configure_logging
from tests.kit import postgres
from tests.kit.server import Server

HOLD_S = 600
FIRST = 300  # polls that are not measured: they pay for one-time work
PAUSE_S = 0.01  # between two logins, so that the worker is idle
LOOK_S = 0.2
OTHERS = 8  # connections of the other requests
_USER = Statement("SELECT * FROM users LIMIT 1")
# The row has the time of the newest poll, so rare queries are exact and do not disturb the measurement.
_HELD = Statement(
    f"""SELECT count(held_until) AS held, CAST(extract(epoch FROM max(held_until)) AS float) - {HOLD_S} AS newest
    FROM game_sessions"""
)


@dataclass
class Held:
    """A poll that waits for its response."""

    gsid: str
    connection: socket.socket


class Game:
    """All game clients: one epoll for their connections."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._epoll = select.epoll()
        self._held: dict[int, Held] = {}

    def poll(self, gsid: str) -> None:
        connection = socket.create_connection(self._address, timeout=30)
        connection.sendall(poll(gsid))
        self._held[connection.fileno()] = Held(gsid, connection)
        self._epoll.register(connection.fileno(), select.EPOLLIN)

    def answered(self, seconds: float) -> list[tuple[str, bytes]]:
        """Returns the gsid and response of the polls that were answered within this time."""
        found = []
        for number, _ in self._epoll.poll(seconds):
            held = self._held.pop(number)
            answer = held.connection.recv(65536)
            while not answer.endswith(b"}"):  # some servers send the head by itself
                answer += held.connection.recv(65536)
            found.append((held.gsid, answer))
            self._epoll.unregister(number)
            held.connection.close()
        return found

    def close(self) -> None:
        for held in self._held.values():
            held.connection.close()
        self._epoll.close()


@dataclass(frozen=True)
class Accepted:
    """Seconds from the first poll."""

    sent: float
    accepted: float


async def begin(game: Game, database: Database, gsids: Sequence[str], before: int, steps: Steps) -> Accepted:
    """Sends all polls and waits until they are held."""
    began = time.time()  # comparable to the clock of the database
    for at, gsid in enumerate(gsids):
        game.poll(gsid)
        if at % 500 == 0:
            steps.detail(f"sending poll {before + at:,} of {before + len(gsids):,}")
    sent = time.time() - began
    while True:
        row = await database.row(_HELD)
        assert row is not None
        if row["held"] == before + len(gsids):
            return Accepted(sent, row["newest"] - began)
        steps.detail(f"{row['held']:,} of {before + len(gsids):,} polls are held")
        if early := game.answered(0):
            raise SystemExit(f"{len(early)} polls were answered before anybody logged in: {early[0][1]!r}")
        await trio.sleep(LOOK_S)


async def hold(server: Server, target: Target, dsn: str, options: argparse.Namespace, steps: Steps) -> dict[str, Any]:
    base = urlsplit(server.base_url)
    game = Game((base.hostname or "", base.port or 0))
    polls = options.polls
    gsids = new_gsids(FIRST + polls)
    workers = server.workers()
    others = await trio.to_thread.run_sync(userinfo, target, OTHERS, options.seconds)
    steps.detail("userinfo before the polls")
    await trio.to_thread.run_sync(others)  # warms up
    alone = await trio.to_thread.run_sync(others)
    async with Database.open(dsn, 2) as database:
        await trio.to_thread.run_sync(register, dsn, gsids)
        await begin(game, database, gsids[:FIRST], 0, steps)
        cpu, memory = cpu_seconds(workers), private_kb(workers)
        begun = await begin(game, database, gsids[FIRST:], FIRST, steps)
        steps.detail("CPU time while the polls are held")
        await trio.sleep(2)  # until the workers are idle
        cpu, memory = cpu_seconds(workers) - cpu, private_kb(workers) - memory
        quiet = cpu_seconds(workers)
        await trio.sleep(10)
        quiet = cpu_seconds(workers) - quiet
        steps.detail("userinfo while the polls are held")
        meanwhile = await trio.to_thread.run_sync(others)
        async with trio.open_nursery() as nursery:
            bus = build_bus(database)
            await nursery.start(bus.run)
            await bus.connected.wait()
            sessions = GameSessionStore(database, bus, 1, 1)
            took = await wake(game, sessions, await database.row(_USER), gsids, options.logins, steps)
            nursery.cancel_scope.cancel()
    game.close()
    return {
        "workers": len(workers),
        "held": FIRST + polls,
        "sent s": begun.sent,
        "accepted s": begun.accepted,
        "kB each": memory / polls,
        "CPU us each": cpu / polls * 1e6,
        "CPU % while held": quiet * 10,
        "wake p50 ms": statistics.median(took) * 1e3,
        "wake p99 ms": statistics.quantiles(took, n=100)[98] * 1e3,
        "wake max ms": max(took) * 1e3,
        **noticed("alone", alone),
        **noticed("meanwhile", meanwhile),
    }


def noticed(when: str, tally: Tally) -> dict[str, float]:
    if tally.failures or not tally.took:
        raise SystemExit(f"userinfo, {when}: {len(tally.failures)} failures: {tally.failures[:1]}")
    return {
        f"{when} per s": len(tally.took) / tally.seconds,
        f"{when} p50 ms": tally.quantile(0.5) * 1e3,
        f"{when} p99 ms": tally.quantile(0.99) * 1e3,
    }


async def wake(
    game: Game, sessions: GameSessionStore, row: Any, gsids: Sequence[str], logins: int, steps: Steps
) -> list[float]:
    user = User.from_row(row)
    took = []
    for at, gsid in enumerate(random.sample(list(gsids), logins)):
        steps.detail(f"login {at + 1} of {logins}")
        began = time.perf_counter()
        assert await sessions.confirm(gsid, user)
        answers = await trio.to_thread.run_sync(game.answered, 10)  # meanwhile the bus sends its message
        took.append(time.perf_counter() - began)
        assert [(found, b'"status":"OK"' in answer) for found, answer in answers] == [(gsid, True)], answers
        await trio.sleep(PAUSE_S)
    return took


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--polls", type=int, default=10_000, help="number of held polls")
    parser.add_argument("--logins", type=int, default=300, help="number of logins to confirm")
    parser.add_argument("--http", default="builtin,hypercorn", help="HTTP servers, separated by commas")
    options = parser.parse_args()
    configure_logging("auto", "error")
    rows: list[dict[str, Any]] = []
    servers = options.http.split(",")
    steps = Steps(2 * len(servers))
    with postgres.running() as database:
        for http in servers:
            for workers in (1, 2):
                steps.next(f"{http}, {workers} worker{'s'[: workers > 1]}")
                dsn = database.fresh()
                settings = {"SSO_WORKERS": str(workers), "SSO_GSID_HOLD_S": str(HOLD_S), "SSO_HTTP": http}
                with running_service(dsn, **settings) as (server, target):
                    row = trio.run(hold, server, target, dsn, options, steps)
                    rows.append({"http": http, **row})
    show(rows, options.out)


if __name__ == "__main__":
    main()
