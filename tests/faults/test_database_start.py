"""The service starts, or a worker restarts, while the database of SSO_DATABASE_URL is not reachable."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults import kill, open_folder
from tests.kit.replication import Node, replication
from tests.kit.server import QUICK, Server, until

WAITING = "waiting for the database at"


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with replication(standbys=0) as nodes:
        yield nodes[0]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture
def server(node: Node, folder: Path) -> Server:
    """A server that is not started. Its log is empty."""
    (folder / "server.log").write_text("")
    logged = {"SSO_LOG_FORMAT": "json", "SSO_LOG_LEVEL": "warning"}
    return Server(folder, QUICK | logged | {"SSO_DATABASE_URL": node.dsn, "SSO_SINGLE_NODE": "1"})


def test_start_waits_for_the_database(node: Node, server: Server) -> None:
    node.kill()
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(server.start)
        assert until(lambda: server.log() == f"{WAITING} {node.address}: refuses connections\n")
        node.start()
        starting.result(60)
    assert server.stop() == 0


def test_start_fails_with_one_line_after_the_wait(node: Node, server: Server) -> None:
    node.kill()
    server.settings["SSO_START_WAIT_S"] = "1"
    for command in ("serve", "migrate"):
        done = server.sso(command, check=False)
        *progress, last = done.stderr.splitlines()
        assert done.returncode == 1
        assert progress == [f"{WAITING} {node.address}: refuses connections"]
        assert last == (
            f"sso: the database cannot be reached within 1 s ({node.address}: refuses connections): "
            "check SSO_DATABASE_URL and that the database runs"
        )
    node.start()


def test_silent_database_does_not_prolong_the_wait(node: Node, server: Server) -> None:
    server.settings["SSO_START_WAIT_S"] = "2"
    with node.silent():
        done = server.sso("migrate", check=False)
    assert done.returncode == 1
    assert "within 2 s" in done.stderr
    assert "does not answer" in done.stderr


def test_worker_that_restarts_while_the_database_is_away_waits_for_it(node: Node, server: Server) -> None:
    server.start()
    try:
        [worker] = server.workers()
        node.kill()
        kill([worker])
        assert until(lambda: server.log_events("worker.start_delayed"))
        [waiting] = server.workers()
        assert waiting != worker
        node.start()
        with server.client() as client:
            assert client.get("/readyz?database=1").status_code == 200
        assert server.workers() == [waiting]
        assert len(server.log_events("process.died")) == 1
    finally:
        assert server.stop() == 0


def test_worker_that_waits_for_the_database_obeys_sigterm(node: Node, server: Server) -> None:
    server.start()
    try:
        node.kill()
        kill(server.workers())
        assert until(lambda: server.log_events("worker.start_delayed"))
    finally:
        code = server.stop()
        node.start()
    assert code == 0
    assert not server.log_events("supervisor.stop_forced")
