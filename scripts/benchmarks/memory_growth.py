"""The memory that a worker takes for each held poll, WebSocket and cached user."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.benchmarks.game_sessions import new_gsids, register
from scripts.benchmarks.growth import fill
from scripts.benchmarks.gsid import Game
from scripts.benchmarks.http_clients import BenchmarkError, run_all
from scripts.benchmarks.latency_kinds import request_once
from scripts.benchmarks.oauth_service import USERS, running_service
from scripts.benchmarks.oauth_target import address_of
from scripts.benchmarks.perm_work import QUESTIONS, PermissionTarget, build_target, check
from scripts.benchmarks.report import Steps, private_kb
from scripts.benchmarks.sockets import GameClients
from sso.perm.stores.facts_cache import MAX_ENTRIES
from sso.serve.process_tuning import raise_open_file_limit
from tests.kit import postgres
from tests.kit.server import Server, until

FIRST = 300  # that are not measured: they pay for one-time work
HOLD_S = 600
UNIT = 10_000  # the figures are those of so many
MANY = 60.0  # seconds for all requests


@dataclass(frozen=True)
class Worker:
    server: Server
    dsn: str
    steps: Steps

    def row(self, name: str, count: int, add: Callable[[int], object]) -> dict[str, Any]:
        """Returns the growth of the worker by ``count`` more of something. ``add`` adds so many and waits for them."""
        self.steps.next(name)
        add(FIRST)
        before = private_kb(self.server.workers())
        add(count)
        grown = private_kb(self.server.workers()) - before
        return {"when": f"{UNIT:,} {name}", "process": "worker", "private": grown / count * UNIT / 1024}


def rows(database: postgres.Postgres, count: int, steps: Steps) -> list[dict[str, Any]]:
    raise_open_file_limit()
    dsn = database.fresh()
    settings = {"SSO_WORKERS": "1", "SSO_GSID_HOLD_S": str(HOLD_S)}
    with running_service(dsn, **settings) as (server, target), server.client() as client:
        worker = Worker(server, dsn, steps)
        game, clients = Game(address_of(target)), GameClients(address_of(target))
        users = min(count, MAX_ENTRIES - FIRST)  # a worker does not keep more
        fill(dsn, USERS + FIRST + users)
        asked = CheckedUsers(build_target(server, client), dsn)
        try:
            return [
                worker.row("held polls", count, lambda number: hold(game, dsn, number)),
                worker.row("WebSockets", count, lambda number: open_sockets(clients, dsn, number, steps)),
                worker.row("cached users", users, asked.ask),
            ]
        finally:
            game.close()
            clients.close()


def hold(game: Game, dsn: str, count: int) -> None:
    gsids = new_gsids(count)
    register(dsn, gsids)
    held = "SELECT count(held_until) FROM game_sessions"
    before = postgres.fetch(dsn, held)
    for gsid in gsids:
        game.poll(gsid)
    if not until(lambda: postgres.fetch(dsn, held) == before + count):
        raise BenchmarkError("not all polls are held")


def open_sockets(clients: GameClients, dsn: str, count: int, steps: Steps) -> None:
    gsids = new_gsids(count)
    register(dsn, gsids)
    clients.open_all(gsids, steps)


class CheckedUsers:
    """Asks about users who were not asked about before, with many questions in a request."""

    def __init__(self, target: PermissionTarget, dsn: str) -> None:
        self._target = target
        ids: Sequence[str] = postgres.fetch(dsn, "SELECT array_agg(user_id ORDER BY user_id) FROM users")
        self._users = iter(ids)

    def ask(self, count: int) -> None:
        users = list(itertools.islice(self._users, count))
        requests = [
            check(self._target, players=users[begin : begin + QUESTIONS]) for begin in range(0, len(users), QUESTIONS)
        ]
        failures = run_all(self._target.server.base_url, map(request_once, requests), 1, MANY).failures
        if failures:
            raise BenchmarkError(f"check: {failures[0]}")
