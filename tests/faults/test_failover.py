"""The primary of a replicated PostgreSQL dies or falls silent under load, and the service goes on with the new one."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.faults import PEOPLE, ROUNDS, SLACK, open_folder, people_document, serving
from tests.kit.load import Journal, Load, rejected_tokens
from tests.kit.postgres import execute, fetch
from tests.kit.replication import Node, dsn_of, replication
from tests.kit.server import Server, running, until
from tests.kit.silent_host import silent_host

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
    """Two workers, a primary and a synchronous standby. Each test leaves the new primary and a new standby."""
    with (
        replication() as nodes,
        open_folder() as folder,
        serving(folder, SSO_DATABASE_URL=dsn_of(*nodes)) as server,
    ):
        server.apply(people_document())
        make_synchronous(nodes[0])
        yield Setup(server, nodes)


def make_synchronous(primary: Node) -> None:
    wait_for_standbys(primary, "*")
    assert until(lambda: fetch(primary.dsn, REPLICATES) == 1, 30)


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
    server, nodes = setup
    wait_for_standbys(nodes[0], "")
    with Load(server.base_url, PEOPLE) as load, nodes[1].silent():
        load.wait_for(100, since=time.monotonic())
    assert load.journal.statuses() == {200}
    assert load.journal.broken() == []
    make_synchronous(nodes[0])


def test_service_starts_and_serves_although_the_first_host_is_silent(
    setup: Setup, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = {name: value for name, value in setup.server.settings.items() if name != "SSO_BIND"}
    with silent_host() as silent:
        url = dsn_of(*setup.nodes).replace("@", f"@127.0.0.1:{silent.port},")
        folder = tmp_path_factory.mktemp("other")
        with running(folder, **settings | {"SSO_DATABASE_URL": url}) as server:
            with Load(server.base_url, PEOPLE) as load:
                load.wait_for(100)
            assert load.journal.statuses() == {200}
            assert load.journal.broken() == []
            # The supervisor and the two workers have tried it once or twice, not for each connection.
            assert 0 < silent.connections() <= 10
