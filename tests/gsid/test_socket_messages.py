"""The WebSocket of a game session over the network: what clients send (§6)."""

from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed

from tests.gsid.conftest import HEARTBEAT_S
from tests.kit.held import (
    SOCKET,
    Rows,
    connect,
    new_game,
)
from tests.kit.server import Server
from tests.kit.timing import SLACK

UNWANTED_CANCEL_S = 0.1  # enough for the server to cancel the poll, if it wrongly did


@pytest.fixture(scope="module")
def server(quick_sockets: Server) -> Server:
    return quick_sockets


TOO_LARGE: dict[str, str | bytes] = {
    "text": "x" * 4097,
    "bytes": b"x" * 4097,
    "few characters of many bytes": "🎮" * 1025,
    "larger than what is read at once": b"x" * 300_000,
}


@pytest.mark.parametrize("kind", TOO_LARGE)
async def test_message_over_4_kb_closes_with_1009_and_cancels_no_poll(server: Server, rows: Rows, kind: str) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        poll = await game.begin_poll()
        await rows.until_polled(game.gsid)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ignore_close, partial(socket.connection.send_message, TOO_LARGE[kind]))
            code, last = await socket.closed()
            nursery.cancel_scope.cancel()
        await poll.close()
    if len(TOO_LARGE[kind]) < 10_000:
        assert (code, last["event"], last["status"]) == (1009, "close", "ERROR")
    else:  # a client that is still sending may see a reset before it reads the close frame
        assert code in (1006, 1009)
    await trio.sleep(UNWANTED_CANCEL_S)
    assert (await rows.get(game.gsid))["cancels"] == 0, "the server closed the socket, not the client"


async def test_too_many_messages_close_with_1008_and_cancel_no_poll(server: Server, rows: Rows) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                for _ in range(200):
                    await socket.connection.send_message("x")

            nursery.start_soon(ignore_close, flood)
            code, last = await socket.closed()
            nursery.cancel_scope.cancel()
    assert (code, last["event"], last["status"]) == (1008, "close", "ERROR")
    await trio.sleep(UNWANTED_CANCEL_S)
    assert (await rows.get(game.gsid))["cancels"] == 0


async def ignore_close(work: Any) -> None:
    with suppress(ConnectionClosed):
        await work()


@pytest.mark.parametrize("frame", ["", b"", "x" * 4096, b"\x00" * 4096, '{"event": "close"}'], ids=len)
async def test_messages_of_a_client_are_ignored(server: Server, frame: str | bytes) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        for _ in range(3):
            await socket.connection.send_message(frame)
        with trio.fail_after(60):
            await socket.connection.ping()  # answered after the messages have been read
        assert socket.connection.closed is None


async def test_pings_are_answered(server: Server) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        with trio.fail_after(60):
            await socket.connection.ping(b"are you there?")


HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PING = b"\x89\x80abcd"


@pytest.mark.parametrize("early", [PING, b"\x00", b"x" * 5000, b"GET / HTTP/1.1\r\n\r\n"], ids=len)
async def test_data_before_the_end_of_the_handshake_does_not_harm_other_clients(server: Server, early: bytes) -> None:
    workers = server.workers()
    game = await new_game(server)
    for worker in workers:
        async with await connect(server, game.address, worker) as raw:
            await raw.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode() + early)
            await raw.receive()  # 101, an error, or a closed connection
            async with await connect(server, worker=worker) as connection:
                assert (await connection.ask("/healthz")).status == 200
    assert server.workers() == workers


async def test_flood_of_pings_on_one_socket_does_not_delay_others(server: Server) -> None:
    (worker, _) = server.workers()
    game, other = await new_game(server), await new_game(server)
    async with await connect(server, game.address, worker) as raw, other.socket(worker=worker) as socket:
        await raw.stream.send_all(HANDSHAKE.format(path=SOCKET + game.gsid).encode())
        assert (await raw.receive()).status == 101
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                with suppress(trio.BrokenResourceError):
                    while True:
                        await raw.stream.send_all(PING * 1000)

            async def read() -> None:
                with suppress(trio.BrokenResourceError):
                    while await raw.stream.receive_some(65536):
                        pass

            nursery.start_soon(flood)
            nursery.start_soon(read)
            await socket.event()
            for _ in range(2):
                began = trio.current_time()
                await socket.next("refresh")
                async with await connect(server) as connection:
                    assert (await connection.ask("/healthz")).status == 200
                assert trio.current_time() - began < HEARTBEAT_S * SLACK
            nursery.cancel_scope.cancel()
