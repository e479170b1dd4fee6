"""Connections to a known worker, and concurrent requests."""

import http.client
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, ApiUser

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0"))  # 0: the few rounds of a normal test run


class Connection:
    """One connection of one user."""

    def __init__(self, server: Server, user: ApiUser) -> None:
        self.headers = {
            "Authorization": f"Bearer {user.jwt}",
            "Factor": FACTOR,
            "Content-Type": "application/json",
        }
        self._connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=60)
        self._connection.connect()
        self.response_headers: Mapping[str, str] = {}  # of the last response, by their names in lower case

    def call(self, path: str, **body: Any) -> ApiResponse:
        return self.request("POST", f"/api/permissions/{path}", body)

    def request(self, method: str, path: str, body: dict[str, Any]) -> ApiResponse:
        self._connection.request(method, path, orjson.dumps(body), self.headers)
        response = self._connection.getresponse()
        self.response_headers = {name.lower(): value for name, value in response.getheaders()}
        return ApiResponse(response.status, orjson.loads(response.read()))

    def worker(self, server: Server) -> int:
        """The pid of the worker that serves the connection."""
        assert self.call("user/info").status == 200  # after a response a worker has accepted the connection
        sock = self._connection.sock
        # The kernel gives the same port to connections with other servers.
        ends = [f":{address[1]:04X}" for address in (sock.getpeername(), sock.getsockname())]
        for line in Path("/proc/net/tcp").read_text().splitlines():
            parts = line.split()  # parts 2 to 4: local address, remote address, state; part 9: inode
            if parts[1].endswith(ends[0]) and parts[2].endswith(ends[1]) and parts[3] == "01":
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


def _several_workers(server: Server) -> list[int]:
    workers = server.workers()
    assert len(workers) > 1, "mark the file with two_workers"
    return workers


def connect_to_each_worker(server: Server, user: ApiUser) -> list[Connection]:
    """Open connections until every worker has one; returns one for each worker."""
    by_worker: dict[int, Connection] = {}
    workers = _several_workers(server)
    for _ in range(500):
        connection = Connection(server, user)
        if by_worker.setdefault(connection.worker(server), connection) is not connection:
            connection.close()
        if len(by_worker) == len(workers):
            return [by_worker[pid] for pid in workers]
    raise AssertionError("some worker never got a connection")


def run_concurrently(
    server: Server, calls: Sequence[tuple[ApiUser, Callable[[Connection], ApiResponse]]]
) -> list[ApiResponse]:
    """Run all requests at the same time, each over a new connection."""
    _several_workers(server)
    start = threading.Barrier(len(calls))

    def run(item: tuple[ApiUser, Callable[[Connection], ApiResponse]]) -> ApiResponse:
        user, call = item
        connection = Connection(server, user)
        try:
            start.wait()
            return call(connection)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
