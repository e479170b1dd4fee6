"""Who is let in: as many as there are descriptors for, not too many of one address, and whoever comes by a file."""

import errno
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sso.core.net import parse_networks
from sso.serve.http1.accept import BACK_OFF_S, ConnectionLimiter, accept_forever
from sso.serve.process_tuning import raise_open_file_limit
from sso.serve.server_limits import ServerLimits
from tests.kit.raw_http import SERVERS, reply, serving

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("kind", SERVERS)
async def test_one_address_has_so_many_connections(kind: str) -> None:
    async with serving(kind, limits=ServerLimits(per_address=2)) as server:
        first, second = await server.open(), await server.open()
        for raw in (first, second):
            await raw.send(GET)
            assert (await raw.answer()).status == 200
        refused = await server.ask(b"")
        assert (refused.status, refused.headers["connection"]) == (429, "close")
        await first.stream.aclose()
        await trio.sleep(0.05)
        assert (await server.ask(GET)).status == 200
        await second.stream.aclose()


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("exempt", ["127.0.0.0/8", "::/0,0.0.0.0/0"])
async def test_proxies_have_as_many_as_they_like(kind: str, exempt: str) -> None:
    limits = ServerLimits(per_address=1, exempt=parse_networks(exempt))
    async with serving(kind, limits=limits) as server, await server.open() as first, await server.open() as second:
        for raw in (first, second):
            await raw.send(GET)
            assert (await raw.answer()).status == 200


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_connections_of_ipv6_clients_are_counted_per_64(first: str, second: str, is_same: bool) -> None:
    limiter = ConnectionLimiter(ServerLimits(per_address=1))
    assert limiter.admit((first, 1))
    assert limiter.admit((second, 2)) is not is_same
    limiter.release((first, 1))
    assert limiter.admit((first, 3))


async def test_a_unix_socket_has_no_address_and_no_cap(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def who(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"], scope["server"]))
        await reply(send, b"")

    path = str(tmp_path / "s")
    async with (
        serving("builtin", who, ServerLimits(per_address=1), path=path) as server,
        await server.open() as first,
        await server.open() as second,
    ):
        for raw in (first, second):
            await raw.send(GET)
            assert (await raw.answer()).status == 200
    assert seen == [(None, None)] * 2


async def test_a_handler_knows_where_its_client_is() -> None:
    seen: list[Any] = []

    async def who(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"], scope["server"]))
        await reply(send, b"")

    async with serving("builtin", who) as server, await server.open() as raw:
        await raw.send(GET)
        await raw.answer()
        assert seen == [(raw.stream.socket.getsockname(), server.address)]


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the numbers are what counts
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(used, highest) + 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_without_descriptors_it_waits_and_goes_on(few_descriptors: None) -> None:
    async with serving("builtin") as server:
        kept = exhaust()
        kept.pop().close()
        with kept.pop() as client:  # one descriptor is free for a client, none for the server's side of it
            kept.append(socket.socket())
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.connect(server.address)
            await trio.sleep(2.5 * BACK_OFF_S)
            for sock in kept:
                sock.close()
            await trio.lowlevel.wait_writable(client)
            client.send(GET)
            with trio.fail_after(5):
                await trio.lowlevel.wait_readable(client)
            assert client.recv(100).startswith(b"HTTP/1.1 200")


def exhaust() -> list[socket.socket]:
    """All the descriptors that there are."""
    kept: list[socket.socket] = []
    try:
        while True:
            kept.append(socket.socket())
    except OSError:
        return kept


class Failing:
    """A listener whose connections cannot be taken."""

    def __init__(self, reason: int) -> None:
        self.tries = 0
        self.reason = reason

    def accept(self) -> Any:
        self.tries += 1
        raise OSError(self.reason, "none")


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EPROTO, errno.EPERM])
async def test_the_pause_is_a_pause(reason: int, autojump_clock: trio.testing.MockClock) -> None:
    listener: Any = Failing(reason)
    with trio.move_on_after(10 * BACK_OFF_S + 0.01):
        await accept_forever(listener, ConnectionLimiter(ServerLimits()), lambda *_: None)
    assert listener.tries == 11


def test_the_limit_of_descriptors_is_what_the_operator_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        raise_open_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(hard, 1 << 20), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
