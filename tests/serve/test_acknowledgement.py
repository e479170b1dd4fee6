"""Whether a client has received what was sent to it."""

import socket
import struct
from collections.abc import Iterator

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sso.serve import acknowledgement
from sso.serve.acknowledgement import ResponseBytes
from tests.kit.server import SLOW_MACHINE_S

MORE_THAN_THE_RECEIVER_TAKES = 600_000
RESPONSE = b"x" * 1000


class Pair:
    """The two ends of a connection."""

    def __init__(self, family: socket.AddressFamily = socket.AF_INET) -> None:
        if family == socket.AF_UNIX:
            self.server, self.client = socket.socketpair()
        else:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.client = socket.socket()
                self.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                self.client.connect(listener.getsockname())
                self.server, _ = listener.accept()
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MORE_THAN_THE_RECEIVER_TAKES)
        self.server.setblocking(False)
        self.client.settimeout(60)
        self.response = ResponseBytes(self.server)

    def write(self, data: bytes) -> None:
        self.response.add(len(data))
        self.server.send(data)

    def read(self, count: int) -> None:
        while count:
            count -= len(self.client.recv(count))

    async def reset(self) -> None:
        """Resets the connection from the client, and waits until the server's kernel knows."""
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.client.close()
        await trio.lowlevel.wait_readable(self.server)

    def close(self) -> None:
        self.server.close()
        self.client.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


async def test_socket_that_is_closed_meanwhile_ends_the_wait(pair: Pair) -> None:
    """Otherwise the handler would never learn the outcome, and its claim on a login would be renewed for ever."""
    outcomes: list[bool] = []
    pair.write(bytes(MORE_THAN_THE_RECEIVER_TAKES))

    async def wait() -> None:
        outcomes.append(await pair.response.are_acknowledged())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        pair.server.close()
    assert outcomes == [True]  # the kernel still sends what was written


async def test_reset_after_everything_was_acknowledged_is_a_delivery(pair: Pair) -> None:
    pair.write(RESPONSE)
    pair.read(len(RESPONSE))
    await pair.reset()
    assert await pair.response.are_acknowledged()


async def test_earlier_responses_of_the_connection_do_not_count(pair: Pair) -> None:
    pair.write(RESPONSE)
    pair.read(len(RESPONSE))
    pair.response = ResponseBytes(pair.server)
    pair.write(bytes(MORE_THAN_THE_RECEIVER_TAKES))
    await pair.reset()
    assert not await pair.response.are_acknowledged()


async def test_reset_before_everything_was_acknowledged_is_no_delivery(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.write(bytes(MORE_THAN_THE_RECEIVER_TAKES))
    pair.read(1000)
    await pair.reset()
    monkeypatch.setattr(acknowledgement, "WAIT_S", SLOW_MACHINE_S)
    with trio.fail_after(SLOW_MACHINE_S / 2):  # nothing more will be acknowledged
        assert not await pair.response.are_acknowledged()


async def test_response_to_a_client_that_has_closed_is_no_delivery(pair: Pair) -> None:
    """A proxy that has given up answers with a reset, and acknowledges nothing."""
    pair.client.close()
    await trio.lowlevel.wait_readable(pair.server)
    pair.write(RESPONSE)
    assert not await pair.response.are_acknowledged()


async def test_reset_counts_where_the_kernel_does_not_tell_the_acknowledged_bytes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgement, "_acknowledged_bytes", lambda sock: None)
    pair.response = ResponseBytes(pair.server)
    pair.write(RESPONSE)
    pair.read(len(RESPONSE))
    assert await pair.response.are_acknowledged()
    await pair.reset()
    assert not await pair.response.are_acknowledged()


async def test_unix_socket_is_acknowledged_when_it_was_read() -> None:
    pair = Pair(socket.AF_UNIX)
    pair.write(RESPONSE)
    pair.read(len(RESPONSE))
    pair.client.close()
    assert await pair.response.are_acknowledged()
    pair.close()
