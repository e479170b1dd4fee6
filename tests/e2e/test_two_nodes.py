"""Two nodes with one database: a login at one node wakes the poll at the other, also while the bus is away."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import trio

from tests.kit import postgres
from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, Session, outcome, press_continue
from tests.kit.held import open_socket
from tests.kit.nats import NatsServer, nats_server, needs_nats
from tests.kit.nodes import running_nodes
from tests.kit.server import Server, until

HOLD_S = 120  # a poll that is not woken fails the test
WOKEN_S = 25  # before the scan of a connected bus
SCANNED_S = 40
BUS_CONNECTIONS = "pg_stat_activity WHERE datname = current_database() AND application_name = 'sso bus'"


class Nodes(NamedTuple):
    first: Server  # where the game polls
    second: Server  # where the player signs in
    browser: Browser  # of the second node
    nats: NatsServer | None


@contextmanager
def two_nodes(dsn: str, folder: Path, nats: NatsServer | None) -> Iterator[Nodes]:
    settings = {"SSO_GSID_HOLD_S": str(HOLD_S), "SSO_GSID_TTL_S": "600", "SSO_BUS_URL": nats.url if nats else ""}
    with ExitStack() as stack:
        first, second = stack.enter_context(running_nodes(folder, dsn, (0, 0), **settings))
        browser = stack.enter_context(fresh_browser(second, new_user(second)))
        for server in (first, second):
            assert until(lambda: server.log_events("bus.connected"))  # noqa: B023 - called at once
        yield Nodes(first, second, browser, nats)


@pytest.fixture(scope="module", params=["postgres", pytest.param("nats", marks=needs_nats)])
def nodes(
    request: pytest.FixtureRequest, postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nodes]:
    with ExitStack() as stack:
        nats = stack.enter_context(nats_server()) if request.param == "nats" else None
        dsn, folder = postgres_server.fresh(), tmp_path_factory.mktemp("nodes")
        yield stack.enter_context(two_nodes(dsn, folder, nats))


@pytest.fixture
def game(nodes: Nodes) -> Iterator[Game]:
    with Game(nodes.first) as game:
        yield game


class HeldPoll:
    """A poll in another thread."""

    def __init__(self, session: Session) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._answer: Future[httpx.Response] = self._pool.submit(session.poll)
        assert until(lambda: session.row("poll")["poll"] == 1)

    def result(self) -> tuple[str, str]:
        return outcome(self.answer())

    def answer(self) -> httpx.Response:
        try:
            return self._answer.result(HOLD_S + 20)
        finally:
            self._pool.shutdown()


def break_bus(nodes: Nodes) -> None:
    """Cuts the nodes' connections to the bus. The one to NATS cannot be reopened."""
    lost = [len(server.log_events("bus.connection_lost")) for server in nodes[:2]]
    if nodes.nats:
        nodes.nats.kill()
    else:
        query(nodes.first, f"SELECT pg_terminate_backend(pid) FROM {BUS_CONNECTIONS}")
    for server, before in zip(nodes[:2], lost, strict=True):
        assert until(lambda: len(server.log_events("bus.connection_lost")) > before)  # noqa: B023 - called at once


def repair_bus(nodes: Nodes) -> None:
    connected = [len(server.log_events("bus.connected")) for server in nodes[:2]]
    if nodes.nats:
        nodes.nats.start()
        for server, before in zip(nodes[:2], connected, strict=True):
            assert until(lambda: len(server.log_events("bus.connected")) > before)  # noqa: B023 - called at once
    else:
        assert until(lambda: query(nodes.first, f"SELECT count(*) FROM {BUS_CONNECTIONS}")[0]["count"] == 2)


async def closed_socket(server: Server, session: Session) -> tuple[int, dict[str, Any]]:
    """Opens the socket of a session and returns how it was closed."""
    async with open_socket(server, session.gsid, session.game.address) as socket:
        return await socket.closed(seconds=HOLD_S)


@contextmanager
def broken_bus(nodes: Nodes) -> Iterator[None]:
    break_bus(nodes)
    try:
        yield
    finally:
        repair_bus(nodes)


def test_login_at_one_node_wakes_the_poll_at_the_other(nodes: Nodes, game: Game) -> None:
    session = game.register()
    poll = HeldPoll(session)
    began = time.monotonic()
    press_continue(nodes.browser, session)
    assert poll.result() == ("OK", "")
    assert time.monotonic() - began < WOKEN_S


def test_login_while_the_bus_is_away_is_found_by_the_scan(nodes: Nodes, game: Game) -> None:
    session = game.register()
    poll = HeldPoll(session)
    with broken_bus(nodes):
        began = time.monotonic()
        press_continue(nodes.browser, session)
        assert poll.result() == ("OK", "")
        assert time.monotonic() - began < SCANNED_S


def test_lost_message_is_replaced_by_the_scan_after_a_reconnect(nodes: Nodes, game: Game) -> None:
    """The node that changed the session died before it published the change."""
    session = game.register()
    poll = HeldPoll(session)
    session.change("status = 'closed', state = 'OK'")
    with broken_bus(nodes):
        pass
    assert poll.result() == ("ERROR", "session closed")


def test_login_after_the_bus_came_back_wakes_the_poll(nodes: Nodes, game: Game) -> None:
    with broken_bus(nodes):
        pass
    session = game.register()
    poll = HeldPoll(session)
    began = time.monotonic()
    press_continue(nodes.browser, session)
    assert poll.result() == ("OK", "")
    assert time.monotonic() - began < WOKEN_S


def test_withdrawn_permission_is_effective_at_once_without_the_bus(nodes: Nodes) -> None:
    """A permission check never depends on a message."""
    application = {"application_id": 10, "name": "Tanks"}
    nodes.first.apply({"applications": [application], "schemas": {"10": {}}})
    with Game(nodes.first) as game:
        session = game.register(app_id=10)
        assert f"{session.decision}/continue" in nodes.browser.follow(nodes.browser.get(session.page)).text
        with broken_bus(nodes):
            schema = {"login": {"cannot": {"value": True}}}
            nodes.first.apply({"applications": [application], "schemas": {"10": schema}})
            nodes.browser.follow(nodes.browser.submit(f"{session.decision}/continue"))
            assert session.status == "pending"
            assert f"{session.decision}/continue" not in nodes.browser.follow(nodes.browser.get(session.page)).text


def test_ban_at_one_node_ends_poll_socket_and_permissions_at_the_other(nodes: Nodes, game: Game) -> None:
    """The times are printed; a poll that is not woken fails the test, because it is held for longer."""
    nodes.first.apply({"applications": [{"application_id": 12, "name": "Tanks"}]})
    nodes.first.apply({"schemas": {"12": {"public_data": {"play": {"value": True}}}}})
    root, login = new_user(nodes.second), new_user(nodes.second)
    nodes.second.sso("role", "assign", root, "root", "--app", "1", "--yes")
    user_id = query(nodes.second, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"]
    with nodes.second.client() as there, nodes.first.client() as here, fresh_browser(nodes.second, login) as browser:
        credentials = {"login": root, "password": PASSWORD, "factor": "f"}
        jwt = there.post("/proxy/api/login", json=credentials).json()["jwt"]
        headers = {"Factor": "f", "Authorization": f"Bearer {jwt}"}
        question = {"application_id": 12, "data": {"questions": [{"user_id": user_id, "rule": "play"}]}}

        def is_allowed() -> bool:
            answer = here.post("/api/permissions/check", json=question, headers=headers)
            return bool(answer.json()["data"][0]["allow"])

        session = game.register(app_id=12)
        poll = HeldPoll(session)
        assert browser.get(session.decision).status_code == 200
        assert is_allowed()
        socket = ThreadPoolExecutor(1).submit(trio.run, closed_socket, nodes.first, session)
        assert until(lambda: session.row("socket")["socket"])
        began = time.monotonic()
        body = {"scope": {"application_id": 12}, "reason": "Cheating"}
        banned = there.post(f"/api/admin/users/{user_id}/bans", json=body, headers=headers)
        committed = time.monotonic()
        assert banned.status_code == 201, banned.text
        assert not is_allowed()
        checked = time.monotonic()
        refused = poll.answer()
        answered = time.monotonic()
        assert (refused.status_code, refused.json()["ban"]["reason"]) == (403, "Cheating")
        code, event = socket.result(HOLD_S)
        assert (event["error"], event["ban"]["reason"]) == ("banned", "Cheating")
        times = {"ban": committed - began, "check": checked - committed, "poll": answered - committed}
        times["socket"] = time.monotonic() - committed
        print({name: f"{1000 * seconds:.0f} ms" for name, seconds in times.items()}, code)


def test_key_rotation_by_a_command_reaches_both_nodes(nodes: Nodes) -> None:
    kid = nodes.first.sso("key", "rotate").stdout.split()[0]
    for server in nodes[:2]:
        with server.client() as client:
            assert until(lambda: kid in client.get("/proxy/oauth/keys").text)


def test_doctor_checks_the_bus(nodes: Nodes) -> None:
    name = "NATS" if nodes.nats else "PostgreSQL"
    assert f"{name}, a message took " in nodes.first.sso("doctor", "--verbose", check=False).stdout
    if nodes.nats:
        with broken_bus(nodes):
            report = nodes.first.sso("doctor", check=False)
        assert report.returncode == 1
        assert "NATS: localhost:" in report.stdout
        assert "SSO_BUS_URL" in report.stdout
