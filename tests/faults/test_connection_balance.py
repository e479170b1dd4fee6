"""Connections are balanced over the workers, also after a reload and beside a hanging worker."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults import open_folder, serving
from tests.kit.postgres import Postgres
from tests.kit.server import Server, until

CONNECTIONS = 40
BURSTS = 20


@pytest.fixture(scope="module")
def server(postgres_server: Postgres) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    with open_folder() as folder, serving(folder, SSO_DATABASE_URL=dsn) as server:
        yield server
    postgres_server.drop(dsn)


def connection_counts(server: Server) -> dict[int, int]:
    """Returns the number of client connections by worker."""
    port = f":{urlsplit(server.base_url).port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(port) and line[3] == "01"}
    return {pid: sum(link in ours for link in open_files(pid)) for pid in server.workers()}


def open_files(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            yield str(entry.readlink())


@contextmanager
def burst(server: Server) -> Iterator[None]:
    address = urlsplit(server.base_url)
    clients = [socket.create_connection((address.hostname, address.port)) for _ in range(CONNECTIONS)]
    try:
        yield
    finally:
        for client in clients:
            client.close()


def is_balanced(server: Server) -> bool:
    counts = connection_counts(server).values()
    return sum(counts) == CONNECTIONS and min(counts) >= CONNECTIONS // 4


def balances_a_burst(server: Server) -> bool:
    """Whether one of several bursts is balanced: while other programs use the machine, a worker may get no CPU time."""
    for _ in range(BURSTS):
        with burst(server):
            if until(lambda: is_balanced(server), 2):
                return True
    return False


def test_burst_of_connections_is_balanced_also_after_a_reload(server: Server) -> None:
    assert balances_a_burst(server)
    before = set(server.workers())
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: len(server.workers()) == 2 and not before & set(server.workers()), 30)
    assert balances_a_burst(server)


def test_hanging_worker_gets_no_connections(server: Server) -> None:
    hangs, works = server.workers()
    os.kill(hangs, signal.SIGSTOP)
    try:
        with burst(server):
            assert until(lambda: connection_counts(server)[works] == CONNECTIONS), connection_counts(server)
    finally:
        os.kill(hangs, signal.SIGCONT)
