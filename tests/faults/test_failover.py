"""The primary of a replicated PostgreSQL dies or falls silent under load, and the service goes on with the new one."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import trio
from trio.to_thread import run_sync as in_thread

from tests.faults import PEOPLE, ROUNDS, open_folder, people_document, serving
from tests.kit.browser import new_user
from tests.kit.held import Player, ask_once, begin_polls, new_games, receive_all, rows_of
from tests.kit.load import Journal, Load, rejected_tokens
from tests.kit.postgres import execute, fetch
from tests.kit.replication import Node, dsn_of, replication
from tests.kit.server import Server, until
from tests.kit.silent_host import SilentHost, silent_host
from tests.kit.timing import SLACK

POLLS = 20 if ROUNDS > 1 else 8
REFUSED_S = 2.0
FOLLOWED_S = 5.0
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sso%'"
LISTENERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sso bus'"
REPLICATES = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"


class Setup(NamedTuple):
    server: Server
    nodes: list[Node]  # the primary first


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    """Two workers, a primary and a synchronous standby. The first host of the URL never answers.

    Each test leaves the new primary and a new standby.
    """
    with (
        replication() as nodes,
        silent_host() as silent,
        open_folder() as folder,
        serving(
            folder, SSO_DATABASE_URL=url(silent, nodes), SSO_GSID_HOLD_S="120", SSO_DATABASE_TIMEOUT_S="5"
        ) as server,
    ):
        server.apply(people_document())
        make_synchronous(nodes[0])
        yield Setup(server, nodes)


def url(silent: SilentHost, nodes: list[Node]) -> str:
    return dsn_of(*nodes).replace("@", f"@127.0.0.1:{silent.port},")


@pytest.fixture(scope="module")
def player(setup: Setup) -> Player:
    return Player(setup.server, new_user(setup.server, login="player@example.com"))


def make_synchronous(primary: Node) -> None:
    wait_for_standbys(primary, "*")
    assert until(lambda: fetch(primary.dsn, REPLICATES) == 1)


def wait_for_standbys(primary: Node, names: str) -> None:
    """Sets which standbys must have a transaction before it is committed. An empty string means none."""
    execute(primary.dsn, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    execute(primary.dsn, "SELECT pg_reload_conf()")


def promote(setup: Setup) -> Node:
    """Promotes the standby, which then waits for no other server."""
    standby = setup.nodes[1]
    standby.promote()
    return standby


def replace_standby(setup: Setup, number: int) -> None:
    """Makes a new standby in place of the former primary, on its port."""
    former, primary = setup.nodes
    former.kill()
    setup.nodes[:] = [primary, primary.standby(f"replacement{number}", former.port)]
    make_synchronous(primary)


def first_login(journal: Journal, since: float) -> float:
    """Returns the seconds until a login that began after ``since`` was answered with 200."""
    return min(entry.ended for entry in journal.since(since) if entry.status == 200 and entry.what != "keys") - since


def test_killed_primary_is_followed_without_a_restart_and_no_login_is_lost(setup: Setup) -> None:
    server, nodes = setup
    workers = server.workers()
    for number in range(max(1, ROUNDS // 2)):
        with Load(server.base_url, PEOPLE) as load:
            load.wait_for(20)
            former = nodes[0]
            killed = time.monotonic()
            former.kill()
            primary = promote(setup)
            promoted = time.monotonic()
            load.wait_for(20, since=promoted)
            load.wait_for(50, since=time.monotonic())  # no further failures
        journal = load.journal
        print(
            f"{journal.count()}: promoted {promoted - killed:.2f} s after the kill, "
            f"first login {first_login(journal, killed):.2f} s after it"
        )
        last_refused = max((entry.ended for entry in journal.answered(503)), default=promoted)
        assert journal.statuses() <= {200, 503}
        assert journal.broken() == []
        assert journal.slowest() < REFUSED_S * SLACK
        assert last_refused - promoted < FOLLOWED_S * SLACK
        assert server.workers() == workers
        assert until(lambda: fetch(primary.dsn, LISTENERS) == 2)  # noqa: B023 - called in this round
        assert rejected_tokens(server.base_url, journal.tokens) == []
        replace_standby(setup, number)


def test_held_polls_go_on_waiting_and_get_their_logins(setup: Setup, player: Player) -> None:
    outcomes = trio.run(log_in_after_failover, setup, player)
    assert outcomes == ["OK"] * POLLS
    replace_standby(setup, 50)


async def log_in_after_failover(setup: Setup, player: Player) -> list[str]:
    """Returns the outcomes of polls that began before the failover; their logins are confirmed after it."""
    server, nodes = setup
    games = await new_games(server, POLLS)
    polls = await begin_polls(games)
    async with rows_of(server) as rows:
        for game in games:
            await rows.until_polled(game.gsid)
    await in_thread(nodes[0].kill)
    assert (await ask_once(server, "/readyz")).status == 200
    await in_thread(promote, setup)
    with trio.fail_after(60):
        for game in games:
            while await player.confirm(game.gsid) != 303:  # noqa: ASYNC110 - 503 until the worker finds the primary
                await trio.sleep(0.05)
    return [answer.outcome for answer in await receive_all(polls)]


def test_silent_primary_is_left_when_the_standby_is_promoted(setup: Setup) -> None:
    server, nodes = setup
    workers = server.workers()
    former = nodes[0]
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        with former.silent():
            silent = time.monotonic()
            primary = promote(setup)
            promoted = time.monotonic()
            load.wait_for(20, since=promoted)
            load.wait_for(50, since=time.monotonic())  # no further failures
            assert until(lambda: fetch(primary.dsn, LISTENERS) == 2)
        wait_for_standbys(former, "")
        assert until(lambda: fetch(former.dsn, CONNECTIONS) == 0)  # although it accepts writes again
    journal = load.journal
    last_refused = max((entry.ended for entry in journal.answered(503)), default=promoted)
    print(f"{journal.count()}: first login {first_login(journal, silent):.2f} s after the silence began")
    assert journal.statuses() <= {200, 503}
    assert journal.broken() == []
    assert journal.slowest() < REFUSED_S * SLACK
    assert last_refused - promoted < FOLLOWED_S * SLACK
    assert server.workers() == workers
    assert fetch(primary.dsn, CONNECTIONS) >= 2
    assert rejected_tokens(server.base_url, journal.tokens) == []
    replace_standby(setup, 100)


def test_silent_standby_is_not_noticed_by_clients(setup: Setup) -> None:
    """Neither is the first host, which never answers."""
    server, nodes = setup
    wait_for_standbys(nodes[0], "")
    with Load(server.base_url, PEOPLE) as load, nodes[1].silent():
        load.wait_for(100 if ROUNDS > 1 else 40, since=time.monotonic())
    assert load.journal.statuses() == {200}
    assert load.journal.broken() == []
    make_synchronous(nodes[0])
