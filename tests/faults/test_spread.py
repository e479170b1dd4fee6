"""Connections are spread over the workers, whatever became of one of them."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.faults import open_folder, serving
from tests.kit.server import Server, until

MANY = 40


def inside(server: Server) -> dict[int, int]:
    """How many connections of clients each worker holds."""
    port = f":{urlsplit(server.base_url).port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(port) and line[3] == "01"}
    return {pid: sum(link in ours for link in links(pid)) for pid in server.workers()}


def links(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            yield str(entry.readlink())


@contextmanager
def burst(server: Server) -> Iterator[None]:
    address = urlsplit(server.base_url)
    clients = [socket.create_connection((address.hostname, address.port)) for _ in range(MANY)]
    try:
        yield
    finally:
        for client in clients:
            client.close()


def even(server: Server) -> bool:
    counts = inside(server).values()
    return sum(counts) == MANY and min(counts) >= MANY // 4


def test_a_burst_is_spread_also_over_those_that_follow_others() -> None:
    with open_folder() as folder, serving(folder) as server:
        with burst(server):
            assert until(lambda: even(server), 5), inside(server)
        before = set(server.workers())
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        assert until(lambda: len(server.workers()) == 2 and not before & set(server.workers()), 30)
        with burst(server):
            assert until(lambda: even(server), 5), inside(server)


def test_a_worker_that_hangs_keeps_nobody_waiting() -> None:
    with open_folder() as folder, serving(folder) as server:
        hangs, works = server.workers()
        os.kill(hangs, signal.SIGSTOP)
        try:
            with burst(server):
                assert until(lambda: inside(server)[works] == MANY, 5), inside(server)
        finally:
            os.kill(hangs, signal.SIGCONT)
