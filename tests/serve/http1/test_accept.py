"""Accepting connections: limits per address, Unix sockets, and a lack of file descriptors."""

import errno
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sso.core.net import parse_networks
from sso.serve.http1.accept import BACK_OFF_S, MAX_FACTOR, SLOW_TURN_S, Backlog, ConnectionLimiter, accept_forever
from sso.serve.process_tuning import raise_open_file_limit
from sso.serve.server_limits import ServerLimits
from tests.kit.raw_http import RawConnection, RunningServer, reply, serving

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_connections_above_the_limit_of_an_address_get_429() -> None:
    async with serving(limits=ServerLimits(per_address=2)) as server:
        first, second = await server.open(), await server.open()
        for connection in (first, second):
            await connection.send(GET)
            assert (await connection.response()).status == 200
        rejected = await server.request(b"")
        assert (rejected.status, rejected.headers["connection"]) == (429, "close")
        assert rejected.headers["retry-after"] == "1"
        await first.stream.aclose()
        await wait_for_admission(server)
        await second.stream.aclose()


async def test_connection_above_the_limit_is_not_reset_if_its_request_has_arrived() -> None:
    async with serving(limits=ServerLimits(per_address=1)) as server, await server.open() as first:
        await first.send(GET)
        assert (await first.response()).status == 200
        client = socket.create_connection(server.address)  # the server does not run until its request has arrived
        client.sendall(GET)
        client.setblocking(False)
        async with RawConnection(trio.SocketStream(trio.socket.from_stdlib_socket(client))) as second:
            assert (await second.response()).status == 429
            assert await second.stream.receive_some() == b""


async def wait_for_admission(server: RunningServer) -> None:
    """Returns when the server has noticed that a connection was closed."""
    with trio.fail_after(60):
        while (await server.request(GET)).status == 429:
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("exempt", ["127.0.0.0/8", "::/0,0.0.0.0/0"])
async def test_trusted_proxies_have_no_limit_of_connections(exempt: str) -> None:
    limits = ServerLimits(per_address=1, exempt=parse_networks(exempt))
    async with serving(limits=limits) as server, await server.open() as first, await server.open() as second:
        for connection in (first, second):
            await connection.send(GET)
            assert (await connection.response()).status == 200


@pytest.mark.parametrize(
    ("first", "second", "same_client"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_connections_of_ipv6_clients_are_counted_per_64(first: str, second: str, same_client: bool) -> None:
    limiter = ConnectionLimiter(ServerLimits(per_address=1))
    assert limiter.admit((first, 1))
    assert limiter.admit((second, 2)) is not same_client
    limiter.release((first, 1))
    assert limiter.admit((first, 3))


def test_networks_of_one_ipv6_48_have_ten_times_the_limit_of_connections_together() -> None:
    limiter = ConnectionLimiter(ServerLimits(per_address=2))
    clients = [(f"2001:db8:1:{number:x}::1", number) for number in range(21)]
    assert [limiter.admit(client) for client in clients] == [True] * 20 + [False]
    assert limiter.admit(("2001:db8:2::1", 1)), "another /48"
    limiter.release(clients[0])
    assert limiter.admit(clients[20])


class Addresses:
    """An application that records the addresses in the scope."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append((scope["client"], scope["server"]))
        await reply(send, b"")


async def test_connections_over_a_unix_socket_have_no_address_and_no_limit(tmp_path: Path) -> None:
    app = Addresses()
    async with (
        serving(app, ServerLimits(per_address=1), path=str(tmp_path / "s")) as server,
        await server.open() as first,
        await server.open() as second,
    ):
        for connection in (first, second):
            await connection.send(GET)
            assert (await connection.response()).status == 200
    assert app.seen == [(None, None)] * 2


async def test_scope_has_the_addresses_of_client_and_server() -> None:
    app = Addresses()
    async with serving(app) as server, await server.open() as connection:
        await connection.send(GET)
        await connection.response()
        assert app.seen == [(connection.stream.socket.getsockname(), server.address)]


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the numbers are what counts
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(used, highest) + 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_server_accepts_again_when_descriptors_are_free(few_descriptors: None, virtual_clock: MockClock) -> None:
    async with serving() as server:
        used = use_all_descriptors()
        used.pop().close()
        with used.pop() as client:  # one descriptor is free for a client, none for the server's side of it
            used.append(socket.socket())
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.connect(server.address)
            await trio.sleep(2.5 * BACK_OFF_S)
            for sock in used:
                sock.close()
            await trio.lowlevel.wait_writable(client)
            client.send(GET)
            with trio.fail_after(60):
                await trio.lowlevel.wait_readable(client)
            assert client.recv(100).startswith(b"HTTP/1.1 200")


def use_all_descriptors() -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        while True:
            sockets.append(socket.socket())
    except OSError:
        return sockets


class FailingListener:
    def __init__(self, reason: int) -> None:
        self.attempts = 0
        self.reason = reason

    def accept(self) -> Any:
        self.attempts += 1
        raise OSError(self.reason, "none")


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EPROTO, errno.EPERM])
async def test_failed_accept_is_repeated_after_a_pause(reason: int, autojump_clock: MockClock) -> None:
    listener: Any = FailingListener(reason)
    with trio.move_on_after(10 * BACK_OFF_S + 0.01):
        await accept_forever(listener, ConnectionLimiter(ServerLimits()), lambda *_: None)
    assert listener.attempts == 11


async def test_batches_grow_while_a_busy_process_leaves_connections_waiting(autojump_clock: MockClock) -> None:
    backlog = Backlog()

    async def factors(turns: int, seconds: float) -> list[int]:
        found = []
        for _ in range(turns):
            await trio.sleep(seconds)
            found.append(backlog.factor())
        return found

    busy = 2 * SLOW_TURN_S
    assert await factors(2, busy) == [1, 1]
    backlog.is_left = True
    assert await factors(5, busy) == [2, 4, 8, MAX_FACTOR, MAX_FACTOR]
    assert await factors(1, SLOW_TURN_S / 10) == [1]  # a burst of connections, and time enough for all of them


def test_limit_of_open_files_is_raised_to_the_hard_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        raise_open_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(hard, 1 << 20), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
