"""Plain connections, to be told apart by the worker that serves them, and many requests at the same instant."""

import http.client
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Answer, Person

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0"))  # 0: few, for every day


class Wire:
    """One connection of one person."""

    def __init__(self, server: Server, person: Person) -> None:
        self.headers = {
            "Authorization": f"Bearer {person.jwt}",
            "Factor": FACTOR,
            "Content-Type": "application/json",
        }
        self._connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=30)
        self._connection.connect()

    def call(self, path: str, **body: Any) -> Answer:
        self._connection.request("POST", f"/api/permissions/{path}", orjson.dumps(body), self.headers)
        response = self._connection.getresponse()
        return Answer(response.status, orjson.loads(response.read()))

    def worker(self, server: Server) -> int:
        """The pid of the worker that has the other end."""
        assert self.call("user/info").status == 200  # by now it was accepted
        port = self._connection.sock.getsockname()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines():
            parts = line.split()  # …, local and remote address, state, …, and at last the inode
            if parts[2].endswith(f":{port:04X}") and parts[3] == "01":
                return _holder(f"socket:[{parts[9]}]", server.workers())
        raise AssertionError("no such connection")

    def close(self) -> None:
        self._connection.close()


def _holder(socket: str, pids: Sequence[int]) -> int:
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if str(descriptor.readlink()) == socket:
                    return pid
            except OSError:
                continue
    raise AssertionError("no worker has this connection")


def wire_to_each_worker(server: Server, person: Person) -> list[Wire]:
    """One connection to every worker, found by opening connections until all of them have one."""
    found: dict[int, Wire] = {}
    workers = server.workers()
    for _ in range(500):
        wire = Wire(server, person)
        if found.setdefault(wire.worker(server), wire) is not wire:
            wire.close()
        if len(found) == len(workers):
            return [found[pid] for pid in workers]
    raise AssertionError("some worker never got a connection")


def together(server: Server, calls: Sequence[tuple[Person, Callable[[Wire], Answer]]]) -> list[Answer]:
    """All of these at the same instant, each over a fresh connection."""
    start = threading.Barrier(len(calls))

    def run(item: tuple[Person, Callable[[Wire], Answer]]) -> Answer:
        person, call = item
        wire = Wire(server, person)
        try:
            start.wait()
            return call(wire)
        finally:
            wire.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
