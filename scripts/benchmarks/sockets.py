"""Measures the WebSockets of game sessions in one worker: the time to open many, memory and CPU time of each, the CPU
time of their heartbeats and pings, and the time until a stopping server has closed them all.

Raw sockets of this process are the clients. They answer pings as a real client does.
"""

import argparse
import select
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from scripts.benchmarks.game_sessions import EMPTY_PONG, HEARTBEAT, PING, handshake, new_gsids, register
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, private_kb, show
from sso.log import configure_logging
from tests.kit import postgres
from tests.kit.server import Server

FIRST = 200  # sockets that are not measured: they pay for one-time work
AT_ONCE = 100  # handshakes in flight
HEARTBEATS = 4  # intervals whose CPU time is measured


class GameClients:
    """All clients: one epoll for their connections."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._epoll = select.epoll()
        self._open: dict[int, socket.socket] = {}
        self.events = 0

    def open_all(self, gsids: Sequence[str], steps: Steps) -> float:
        """Returns the seconds until every client has received its first event."""
        began = time.perf_counter()
        waiting: set[int] = set()
        for at, gsid in enumerate(gsids):
            waiting.add(self._handshake(gsid))
            while len(waiting) >= AT_ONCE:
                waiting -= self._receive(1.0)
            if at % 500 == 0:
                steps.detail(f"socket {at:,} of {len(gsids):,}")
        while waiting:
            waiting -= self._receive(1.0)
        return time.perf_counter() - began

    def _handshake(self, gsid: str) -> int:
        connection = socket.create_connection(self._address, timeout=60)
        connection.sendall(handshake(gsid))
        self._open[connection.fileno()] = connection
        self._epoll.register(connection.fileno(), select.EPOLLIN)
        return connection.fileno()

    def _receive(self, seconds: float) -> set[int]:
        """Reads from the connections that have something. Returns those that got an event."""
        received = set()
        for number, _ in self._epoll.poll(seconds):
            connection = self._open[number]
            try:
                data = connection.recv(65536)
            except ConnectionResetError:  # the server did not wait for the answer to a ping
                data = b""
            if not data:
                self._epoll.unregister(number)
                self._open.pop(number).close()
                continue
            if PING in data:
                connection.sendall(EMPTY_PONG)
            if HEARTBEAT in data:
                self.events += data.count(HEARTBEAT)
                received.add(number)
        return received

    def stay(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._receive(left)

    def wait_until_closed(self, seconds: float) -> float:
        began = time.perf_counter()
        while self._open and time.perf_counter() - began < seconds:
            self._receive(0.1)
        return time.perf_counter() - began

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._epoll.close()

    def __len__(self) -> int:
        return len(self._open)


def measure(server: Server, dsn: str, options: argparse.Namespace, steps: Steps) -> dict[str, Any]:
    base = urlsplit(server.base_url)
    clients = GameClients((base.hostname or "", base.port or 0))
    gsids = new_gsids(FIRST + options.sockets)
    register(dsn, gsids)
    workers = server.workers()
    clients.open_all(gsids[:FIRST], steps)
    cpu, memory = cpu_seconds(workers), private_kb(workers)
    opened = clients.open_all(gsids[FIRST:], steps)
    cpu, memory = cpu_seconds(workers) - cpu, private_kb(workers) - memory
    steps.detail("heartbeats")
    clients.stay(options.heartbeat)
    quiet, clients.events = cpu_seconds(workers), 0
    clients.stay(HEARTBEATS * options.heartbeat)
    quiet, events = cpu_seconds(workers) - quiet, clients.events
    steps.detail("stopping")
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    closed = clients.wait_until_closed(20)
    if left := len(clients):
        raise SystemExit(f"{left} sockets were not closed")
    return {
        "sockets": FIRST + options.sockets,
        "opened s": opened,
        "kB each": memory / options.sockets,
        "CPU us each": cpu / options.sockets * 1e6,
        "heartbeats/s": events / (HEARTBEATS * options.heartbeat),
        "CPU % of heartbeats": quiet / (HEARTBEATS * options.heartbeat) * 100,
        "closed s": closed,
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--sockets", type=int, default=9_800, help="number of sockets, beside the first 200")
    parser.add_argument("--heartbeat", type=int, default=5, help="seconds between two heartbeats")
    parser.add_argument("--http", default="builtin,hypercorn", help="HTTP servers, separated by commas")
    options = parser.parse_args()
    configure_logging("auto", "error")
    rows: list[dict[str, Any]] = []
    servers = options.http.split(",")
    steps = Steps(len(servers))
    with postgres.running() as database:
        for http in servers:
            steps.next(http)
            dsn = database.fresh()
            settings = {"SSO_WORKERS": "1", "SSO_HTTP": http, "SSO_GSID_HEARTBEAT_S": str(options.heartbeat)}
            with running_service(dsn, **settings) as (server, _):
                rows.append({"http": http, **measure(server, dsn, options, steps)})
    show(rows, options.out)


if __name__ == "__main__":
    main()
