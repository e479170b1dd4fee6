"""What is killed, lost or broken while games wait: no login that was confirmed is lost, and none is handed out twice.

Few games in every run; with SSO_TEST_ROUNDS=20 (scripts/faults) as many as a busy evening has.
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
from tests.faults import ROUNDS, SLACK, is_alive, kill, open_folder, ports_of, seconds_since, serving, sql
from tests.kit.browser import new_user
from tests.kit.held import (
    Connection,
    Game,
    Player,
    begin_polls,
    new_games,
    open_socket,
    receive_all,
    rows_of,
)
from tests.kit.server import Server, until

LONG = ROUNDS > 3
POLLS = 1000 if LONG else 120
POLLS_AT_STOP, SOCKETS_AT_STOP = (5000, 500) if LONG else (300, 30)
HOLD_S = 120  # longer than anything here takes: whoever is answered was woken
SCAN_S = 5.0
STOPPED_S = 10.0
SETTLED_S = 5.0  # one that dies younger than this is followed a little later
LISTENERS = "FROM pg_stat_activity WHERE application_name = 'sso' AND query ILIKE 'LISTEN%'"
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
    """Two workers and a PostgreSQL of which they know the address only. Each test leaves both running."""
    with open_folder() as folder:
        database = embedded.join(folder / "elsewhere")
        try:
            with serving(folder, SSO_DATABASE_URL=database.dsn(), SSO_GSID_HOLD_S=str(HOLD_S)) as server:
                yield Setup(server, database)
        finally:
            database.close()


@pytest.fixture(scope="module")
def player(setup: Setup) -> Player:
    return Player(setup.server, new_user(setup.server))


@dataclass
class Evening:
    """Many games that wait for their players, and do not give up when something breaks."""

    player: Player
    games: list[Game]
    polls: list[Connection]
    told: dict[str, list[str]] = field(default_factory=dict)  # by gsid
    tokens: list[str] = field(default_factory=list)

    async def play(self, meanwhile: Callable[[], Awaitable[object]] | None = None) -> float:
        """All are confirmed, while something happens; seconds until the last game has its login."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for game, poll in zip(self.games, self.polls, strict=True):
                nursery.start_soon(self._wait, game, poll)
            if meanwhile:
                nursery.start_soon(meanwhile)
            for start in range(10):
                nursery.start_soon(self._confirm, self.games[start::10])
        return trio.current_time() - began

    async def _confirm(self, games: list[Game]) -> None:
        for game in games:
            with trio.fail_after(60):
                while await self.player.confirm(game.gsid) != 303:  # noqa: ASYNC110 - 503, or nobody there
                    await trio.sleep(0.1)

    async def _wait(self, game: Game, poll: Connection) -> None:
        told = self.told.setdefault(game.gsid, [])
        with trio.fail_after(HOLD_S):
            while True:
                async with poll:
                    answer = await poll.receive()
                told.append(answer.outcome)
                if answer.outcome == "OK":
                    self.tokens.append(answer.data["token"])
                if answer.outcome in ("OK", "403", "ERROR", "CANCELLED"):
                    return
                await trio.sleep(answer.data.get("delay", 0.2))
                poll = await self._again(game)

    async def _again(self, game: Game) -> Connection:
        while True:
            try:
                return await game.begin_poll()
            except (OSError, trio.BrokenResourceError):  # nobody there yet
                await trio.sleep(0.1)

    def words(self) -> Counter[str]:
        return Counter(" ".join(told) for told in self.told.values())

    def all_well(self) -> bool:
        return all(told[-1] == "OK" and told.count("OK") == 1 for told in self.told.values())


async def new_evening(setup: Setup, player: Player, count: int = POLLS) -> Evening:
    games = await new_games(setup.server, count)
    began = time.monotonic()
    polls = await begin_polls(games)
    gsids = [game.gsid for game in games]
    async with rows_of(setup.server) as rows:
        while (await rows.run(POLLED, gsids))[0][0] < count:
            assert seconds_since(began) < HOLD_S
            await trio.sleep(0.05)
    await trio.sleep(0.2)
    print(f"{count} polls held after {seconds_since(began):.1f} s")
    return Evening(player, games, polls)


async def delivered_twice(evening: Evening) -> int:
    """Of some that have their login, how many get it again."""
    some = evening.games[:: max(1, len(evening.games) // 20)]
    return sum(answer.outcome == "OK" for answer in await receive_all(await begin_polls(some)))


# Workers


@pytest.mark.parametrize("how_many", [1, 2], ids=["one worker", "all workers"])
async def test_workers_killed_with_polls_held_lose_no_login(setup: Setup, player: Player, how_many: int) -> None:
    await trio.sleep(SETTLED_S / 5)
    evening = await new_evening(setup, player)
    victims = setup.server.workers()[:how_many]
    theirs = set().union(*(ports_of(victim) for victim in victims))
    cut = sum(poll.port in theirs for poll in evening.polls)
    kill(victims)
    took = await evening.play()
    print(f"{cut} of {len(evening.games)} polls cut off, all logins after {took:.1f} s: {dict(evening.words())}")
    assert evening.all_well(), evening.words()
    assert await delivered_twice(evening) == 0
    assert until(lambda: len(setup.server.workers()) == 2)


async def test_a_worker_killed_while_logins_are_handed_out_hands_out_none_twice(setup: Setup, player: Player) -> None:
    """Only what it had claimed and not yet written may be lost, and only by its own clients."""
    await trio.sleep(SETTLED_S / 5)
    evening = await new_evening(setup, player)
    victim = setup.server.workers()[0]
    ports = ports_of(victim)
    its_own = {game.gsid for game, poll in zip(evening.games, evening.polls, strict=True) if poll.port in ports}

    async def kill_it() -> None:
        await trio.sleep(0.3)
        kill([victim])

    await evening.play(kill_it)
    lost = {gsid for gsid, told in evening.told.items() if told[-1] != "OK"}
    print(f"{len(lost)} lost in the crash of {len(its_own)}: {dict(evening.words())}")
    assert all(told.count("OK") <= 1 for told in evening.told.values())
    assert lost <= its_own
    assert len(lost) <= len(its_own) / 2, "no more than were being written at that moment"
    assert await delivered_twice(evening) == 0
    assert until(lambda: len(setup.server.workers()) == 2)


# The database


async def test_postgres_killed_while_logins_are_handed_out_loses_none(setup: Setup, player: Player) -> None:
    evening = await new_evening(setup, player)
    workers = setup.server.workers()

    async def kill_and_restart() -> None:
        await trio.sleep(0.3)
        postmaster = setup.database.pid()
        assert postmaster is not None
        kill([postmaster])
        await trio.to_thread.run_sync(lambda: until(lambda: not is_alive(postmaster)))
        await trio.sleep(1)
        await trio.to_thread.run_sync(setup.database.ensure)

    took = await evening.play(kill_and_restart)
    print(f"all logins after {took:.1f} s: {dict(evening.words())}")
    assert evening.all_well(), evening.words()
    assert len(set(evening.tokens)) == len(evening.games)
    assert await delivered_twice(evening) == 0
    assert setup.server.workers() == workers


async def test_a_lost_listening_connection_delays_logins_and_loses_none(setup: Setup, player: Player) -> None:
    evening = await new_evening(setup, player)

    async def hang_up() -> None:
        for _ in range(5):
            await in_thread(sql, setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {LISTENERS}")
            await trio.sleep(0.2)

    took = await evening.play(hang_up)
    print(f"all logins after {took:.1f} s: {dict(evening.words())}")
    assert set(evening.words()) == {"OK"}, "none had to ask again"


async def test_a_listening_connection_that_went_silent_is_made_up_for_by_looking(setup: Setup, player: Player) -> None:
    evening = await new_evening(setup, player, POLLS // 4)
    # Afresh, so that they are known by what they said last.
    await in_thread(
        sql, setup.dsn, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'sso'"
    )
    listeners = await in_thread(until, lambda: found if len(found := listening(setup)) == 2 else None)
    assert listeners
    kill(listeners, signal.SIGSTOP)
    try:
        took = await evening.play()
    finally:
        kill(listeners, signal.SIGCONT)
    print(f"all logins after {took:.1f} s: {dict(evening.words())}")
    assert evening.all_well(), evening.words()
    assert took < SCAN_S * SLACK + (60 if LONG else 5)


def listening(setup: Setup) -> list[int]:
    return list(sql(setup.dsn, f"SELECT array_agg(pid) {LISTENERS}") or ())


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    return await trio.to_thread.run_sync(partial(work, *arguments))


# An error in the middle (the statements of a delivery, one at a time)

RAISE = "CREATE OR REPLACE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE 'a fault'; END $$ LANGUAGE plpgsql"
FAILING = {
    "claim": "BEFORE UPDATE ON game_sessions FOR EACH ROW WHEN (NEW.status = 'delivered')",
    "tokens": "BEFORE INSERT ON session_tokens FOR EACH ROW",
}


@pytest.mark.parametrize("statement", FAILING)
async def test_a_statement_of_the_delivery_that_fails_costs_no_login(
    setup: Setup, player: Player, statement: str
) -> None:
    (held, fresh) = await new_games(setup.server, 2)
    poll = await held.begin_poll()
    await trio.sleep(0.5)
    table = FAILING[statement].split(" ON ")[1].split()[0]
    await in_thread(sql, setup.dsn, RAISE, f"CREATE TRIGGER fail {FAILING[statement]} EXECUTE FUNCTION fail()")
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


# A server that leaves


async def test_sigterm_with_many_polls_and_sockets_answers_them_all(setup: Setup, player: Player) -> None:
    server = setup.server
    evening = await new_evening(setup, player, POLLS_AT_STOP)
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
        for game in evening.games[:SOCKETS_AT_STOP]:
            nursery.start_soon(listen, game)
        with trio.fail_after(60):
            while open_now < SOCKETS_AT_STOP:  # noqa: ASYNC110 - counted by many
                await trio.sleep(0.05)
        process = server.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        told = trio.current_time()
        answers = await receive_all(evening.polls)
        answered = trio.current_time() - told
        code = await trio.to_thread.run_sync(process.wait)
        stopped = trio.current_time() - told
    words = Counter(answer.outcome for answer in answers)
    delays = Counter(answer.data.get("delay") for answer in answers)
    print(f"all answered after {answered:.2f} s, stopped after {stopped:.2f} s: {dict(words)}, {dict(codes)}")
    server.stop()
    await trio.to_thread.run_sync(server.start)
    assert words == {"RETRY": POLLS_AT_STOP}
    assert set(delays) <= set(range(2 + POLLS_AT_STOP // 1000))
    assert codes == {1012: SOCKETS_AT_STOP}
    assert code == 0
    assert stopped < STOPPED_S
    assert await in_thread(sql, setup.dsn, "SELECT max(cancels) FROM game_sessions") == 0
    # And each of them goes on where it was.
    games = evening.games[:20]
    polls = await begin_polls(games)
    await player.confirm_all(games)
    assert {answer.outcome for answer in await receive_all(polls)} == {"OK"}
