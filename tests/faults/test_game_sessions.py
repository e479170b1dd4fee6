"""Faults while game polls are held: no confirmed login is lost, and none is delivered twice.

A usual run has few games; SSO_TEST_ROUNDS=20 (scripts/faults) has many.
"""

import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pytest
import trio

from sso.db import embedded
from tests.faults import ROUNDS, is_alive, kill, open_folder, ports_of, seconds_since, serving, sql
from tests.kit.browser import new_user
from tests.kit.constants import changed
from tests.kit.held import (
    Connection,
    Game,
    Player,
    ask_once,
    begin_polls,
    new_games,
    open_socket,
    receive_all,
    rows_of,
)
from tests.kit.load import LOGIN
from tests.kit.long_tests import takes_long
from tests.kit.prepared_data import join_prepared
from tests.kit.server import Server, until
from tests.kit.timing import SLACK

LONG = ROUNDS > 3
POLLS = 1000 if LONG else 16
POLLS_AT_STOP, SOCKETS_AT_STOP = (5000, 500) if LONG else (10, 5)
LOST_LISTENERS = 5 if LONG else 2  # one after the other
HOLD_S = 120  # longer than any test: an answered poll has been woken
# A login of which a worker was not notified while the database was away is found after 10 s instead of 30 s.
LIMITS = {"SSO_GSID_HOLD_S": str(HOLD_S)} | changed({"sso.bus.bus.RARE_RESCAN_S": 10})
SCAN_S = 5.0
LISTENERS = "FROM pg_stat_activity WHERE application_name = 'sso bus'"
POLLED = "SELECT count(*) FROM game_sessions WHERE poll > 0 AND gsid = ANY ($1)"
pytestmark = pytest.mark.timeout(1200 if LONG else 180)


class Setup(NamedTuple):
    server: Server
    database: embedded.Embedded

    @property
    def dsn(self) -> str:
        return self.database.dsn()


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    """Two workers and a separate PostgreSQL. Each test leaves both running."""
    with open_folder() as folder:
        database = join_prepared(folder / "elsewhere")
        try:
            with serving(folder, SSO_DATABASE_URL=database.dsn(), **LIMITS) as server:
                yield Setup(server, database)
        finally:
            database.close()


@pytest.fixture(scope="module")
def player(setup: Setup) -> Player:
    return Player(setup.server, new_user(setup.server))


@dataclass
class WaitingGames:
    """Many games with held polls, which poll again after an error."""

    player: Player
    games: list[Game]
    polls: list[Connection]
    results: dict[str, list[str]] = field(default_factory=dict)  # of all polls, by gsid
    tokens: dict[str, str] = field(default_factory=dict)  # by gsid

    async def log_in(self, fault: Callable[[], Awaitable[object]] | None = None) -> float:
        """Confirms all games while a fault happens. Returns the seconds until the last game has its login."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for game, poll in zip(self.games, self.polls, strict=True):
                nursery.start_soon(self._wait, game, poll)
            if fault:
                nursery.start_soon(fault)
            for start in range(10):
                nursery.start_soon(self._confirm, self.games[start::10])
        return trio.current_time() - began

    async def _confirm(self, games: list[Game]) -> None:
        for game in games:
            with trio.fail_after(60):
                while await self.player.confirm(game.gsid) != 303:  # noqa: ASYNC110 - 503, or no server
                    await trio.sleep(0.1)

    async def _wait(self, game: Game, poll: Connection) -> None:
        results = self.results.setdefault(game.gsid, [])
        with trio.fail_after(HOLD_S):
            while True:
                async with poll:
                    answer = await poll.receive()
                results.append(answer.outcome)
                if answer.outcome == "OK":
                    self.tokens[game.gsid] = answer.data["token"]
                if answer.outcome in ("OK", "403", "ERROR", "CANCELLED"):
                    return
                await trio.sleep(answer.data.get("delay", 0.2))
                poll = await self._poll_again(game)

    async def _poll_again(self, game: Game) -> Connection:
        while True:
            try:
                return await game.begin_poll()
            except (OSError, trio.BrokenResourceError):  # no server yet
                await trio.sleep(0.1)

    async def until_delivered(self, count: int) -> None:
        """Waits until so many games have their login."""
        while len(self.tokens) < count:  # noqa: ASYNC110 - there is no event to wait for
            await trio.sleep(0.005)

    def summary(self) -> Counter[str]:
        """Counts the games by the sequence of their results."""
        return Counter(" ".join(results) for results in self.results.values())

    def all_logged_in_once(self) -> bool:
        return all(results[-1] == "OK" and results.count("OK") == 1 for results in self.results.values())


async def waiting_games(setup: Setup, player: Player, count: int = POLLS) -> WaitingGames:
    games = await new_games(setup.server, count)
    began = time.monotonic()
    polls = await begin_polls(games)
    gsids = [game.gsid for game in games]
    async with rows_of(setup.server) as rows:
        while (await rows.run(POLLED, gsids))[0][0] < count:
            assert seconds_since(began) < HOLD_S
            await trio.sleep(0.05)
    print(f"{count} polls held after {seconds_since(began):.1f} s")
    return WaitingGames(player, games, polls)


async def delivered_twice(waiting: WaitingGames) -> int:
    """Polls again for some games with a login. Returns how many get it again."""
    sample = waiting.games[:: max(1, len(waiting.games) // 20)]
    return sum(answer.outcome == "OK" for answer in await receive_all(await begin_polls(sample)))


# Workers


@pytest.mark.parametrize(
    "how_many", [pytest.param(1, id="one worker", marks=takes_long), pytest.param(2, id="all workers")]
)
async def test_killed_workers_with_held_polls_lose_no_login(setup: Setup, player: Player, how_many: int) -> None:
    waiting = await waiting_games(setup, player)
    victims = setup.server.workers()[:how_many]
    ports = set().union(*(ports_of(victim) for victim in victims))
    lost_polls = sum(poll.port in ports for poll in waiting.polls)
    kill(victims)
    took = await waiting.log_in()
    print(f"{lost_polls} of {len(waiting.games)} polls lost, all logins after {took:.1f} s: {dict(waiting.summary())}")
    assert waiting.all_logged_in_once(), waiting.summary()
    assert await delivered_twice(waiting) == 0
    assert until(lambda: len(setup.server.workers()) == 2)


async def test_worker_killed_during_deliveries_loses_no_login(setup: Setup, player: Player) -> None:
    """A login that it had claimed and not sent is delivered after the lease.

    If it was killed after the last byte, and before it recorded the delivery, a game could get the login again, which
    makes the first tokens void.
    """
    waiting = await waiting_games(setup, player)
    victim = setup.server.workers()[0]

    async def kill_worker() -> None:
        await waiting.until_delivered(5)
        kill([victim])

    took = await waiting.log_in(kill_worker)
    print(f"all logins after {took:.1f} s: {dict(waiting.summary())}")
    assert waiting.all_logged_in_once(), waiting.summary()
    again = await receive_all(await begin_polls(waiting.games))
    repeated = 0
    for game, answer in zip(waiting.games, again, strict=True):
        assert answer.outcome in ("OK", "403")
        if answer.outcome == "OK":
            repeated += 1
            tokens = [waiting.tokens[game.gsid], answer.data["token"]]
            assert [(await ask_once(setup.server, LOGIN, {"token": token})).status for token in tokens] == [401, 200]
    print(f"{repeated} delivered again")
    assert {answer.status for answer in await receive_all(await begin_polls(waiting.games))} == {403}
    assert until(lambda: len(setup.server.workers()) == 2)


# The database


async def test_postgres_killed_during_deliveries_loses_no_login(setup: Setup, player: Player) -> None:
    waiting = await waiting_games(setup, player)
    workers = setup.server.workers()

    async def kill_and_restart() -> None:
        await waiting.until_delivered(5)
        postmaster = setup.database.pid()
        assert postmaster is not None
        kill([postmaster])
        await trio.to_thread.run_sync(lambda: until(lambda: not is_alive(postmaster)))
        while (await ask_once(setup.server, "/readyz?database=1")).status != 503:  # noqa: ASYNC110 - it has no event
            await trio.sleep(0.05)
        await trio.to_thread.run_sync(setup.database.ensure)

    took = await waiting.log_in(kill_and_restart)
    print(f"all logins after {took:.1f} s: {dict(waiting.summary())}")
    assert waiting.all_logged_in_once(), waiting.summary()
    assert len(set(waiting.tokens.values())) == len(waiting.games)
    assert await delivered_twice(waiting) == 0
    assert setup.server.workers() == workers


async def test_lost_listen_connection_loses_no_login(setup: Setup, player: Player) -> None:
    listeners = await in_thread(reopened_listeners, setup)
    waiting = await waiting_games(setup, player)

    async def terminate_listeners() -> None:
        current = listeners
        for _ in range(LOST_LISTENERS):
            await in_thread(sql, setup.dsn, f"SELECT count(pg_terminate_backend(pid)) FROM unnest(ARRAY{current}) pid")
            current = await in_thread(new_listeners, setup, current)

    took = await waiting.log_in(terminate_listeners)
    print(f"all logins after {took:.1f} s: {dict(waiting.summary())}")
    assert set(waiting.summary()) == {"OK"}, "no game had to poll again"


async def test_regular_scan_compensates_for_a_silent_listen_connection(setup: Setup, player: Player) -> None:
    waiting = await waiting_games(setup, player, POLLS // 4)
    listeners = await in_thread(reopened_listeners, setup)
    kill(listeners, signal.SIGSTOP)
    try:
        took = await waiting.log_in()
    finally:
        kill(listeners, signal.SIGCONT)
    print(f"all logins after {took:.1f} s: {dict(waiting.summary())}")
    assert waiting.all_logged_in_once(), waiting.summary()
    assert took < SCAN_S * SLACK + (60 if LONG else 5)


def reopened_listeners(setup: Setup) -> list[int]:
    """Terminates all connections of the server. Returns the backend pids of its new LISTEN connections."""
    connections = "FROM pg_stat_activity WHERE application_name LIKE 'sso%'"
    old = sql(setup.dsn, f"SELECT array_agg(pid) {connections}")
    sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {connections}")
    return new_listeners(setup, old)


def new_listeners(setup: Setup, old: list[int]) -> list[int]:
    """Waits for new LISTEN connections of both workers."""

    def find() -> list[int] | None:
        pids = sorted(set(sql(setup.dsn, f"SELECT array_agg(pid) {LISTENERS}") or ()) - set(old))
        return pids if len(pids) == 2 else None

    pids: list[int] | None = until(find)
    assert pids
    return pids


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    return await trio.to_thread.run_sync(partial(work, *arguments))


# Failing statements of a delivery

FAIL = "CREATE OR REPLACE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE 'a fault'; END $$ LANGUAGE plpgsql"
FAILING = {
    "claim": "BEFORE UPDATE ON game_sessions FOR EACH ROW WHEN (NEW.status = 'delivered')",
    "tokens": "BEFORE INSERT ON session_tokens FOR EACH ROW",
}


@pytest.mark.parametrize("statement", FAILING)
async def test_failing_statement_of_the_delivery_loses_no_login(setup: Setup, player: Player, statement: str) -> None:
    (held, fresh) = await new_games(setup.server, 2)
    poll = await held.begin_poll()
    async with rows_of(setup.server) as rows:
        await rows.until_polled(held.gsid)
    table = FAILING[statement].split(" ON ")[1].split()[0]
    await in_thread(sql, setup.dsn, FAIL, f"CREATE TRIGGER fail {FAILING[statement]} EXECUTE FUNCTION fail()")
    try:
        for game in (held, fresh):
            assert await player.confirm(game.gsid) == 303
        (answer,) = await receive_all([poll])
        answers = [answer, await held.poll(), await fresh.poll()]
        assert all(answer.outcome != "OK" and "token" not in answer.data for answer in answers)
        assert {answer.status for answer in answers} <= {200, 500, 503}
        statuses = f"SELECT array_agg(status) FROM game_sessions WHERE gsid IN ('{held.gsid}', '{fresh.gsid}')"
        assert await in_thread(sql, setup.dsn, statuses) == ["confirmed", "confirmed"]
    finally:
        await in_thread(sql, setup.dsn, f"DROP TRIGGER fail ON {table}")
    for game in (held, fresh):
        assert (await game.poll()).outcome == "OK"
        assert (await game.poll()).status == 403


# Shutdown


async def test_sigterm_answers_all_held_polls_and_closes_all_sockets(setup: Setup, player: Player) -> None:
    server = setup.server
    waiting = await waiting_games(setup, player, POLLS_AT_STOP)
    codes: Counter[int] = Counter()
    open_now = 0

    async def listen(game: Game) -> None:
        nonlocal open_now
        async with open_socket(server, game.gsid, game.address) as socket:
            await socket.event(seconds=60)
            open_now += 1
            codes[(await socket.closed(seconds=HOLD_S))[0]] += 1

    answers = []
    async with trio.open_nursery() as nursery:
        for game in waiting.games[:SOCKETS_AT_STOP]:
            nursery.start_soon(listen, game)
        with trio.fail_after(60):
            while open_now < SOCKETS_AT_STOP:  # noqa: ASYNC110 - there is no event to wait for
                await trio.sleep(0.05)
        process = server.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        began = trio.current_time()
        answers = await receive_all(waiting.polls)
        answered = trio.current_time() - began
        code = await trio.to_thread.run_sync(process.wait)
        stopped = trio.current_time() - began
    results = Counter(answer.outcome for answer in answers)
    delays = Counter(answer.data.get("delay") for answer in answers)
    print(f"all answered after {answered:.2f} s, stopped after {stopped:.2f} s: {dict(results)}, {dict(codes)}")
    server.stop()
    await trio.to_thread.run_sync(server.start)
    assert results == {"RETRY": POLLS_AT_STOP}
    assert set(delays) <= set(range(2 + POLLS_AT_STOP // 1000))
    assert codes == {1012: SOCKETS_AT_STOP}
    assert code == 0
    assert not server.log_events("process.killed")
    assert await in_thread(sql, setup.dsn, "SELECT max(cancels) FROM game_sessions") == 0
    # The sessions continue after the restart.
    games = waiting.games[:20]
    polls = await begin_polls(games)
    await player.confirm_all(games)
    assert {answer.outcome for answer in await receive_all(polls)} == {"OK"}
