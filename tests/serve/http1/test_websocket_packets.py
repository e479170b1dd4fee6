"""A WebSocket of the built-in server writes what belongs together in one packet."""

import socket
from types import SimpleNamespace
from typing import Any

import trio
from trio.testing import MockClock

from sso.serve.http1.frames import EMPTY_PING, TEXT, frame
from sso.serve.http1.websocket_output import WebSocketOutput
from sso.serve.server_limits import ServerLimits
from sso.web.client_connection import FAST_EXTENSION
from tests.kit.raw_http import serving
from tests.kit.websocket_upgrade import UPGRADE

BEAT = frame(TEXT, b"beat")
PONG = b"\x8a\x80\0\0\0\0"


async def test_corked_output_is_written_at_once() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the boundaries of writes
    with ours, theirs:
        connection: Any = SimpleNamespace(sock=ours, context=SimpleNamespace(limits=ServerLimits()))
        output = WebSocketOutput(connection)
        output._write(b"a")
        output.cork()
        output._write(b"b")
        await output._flush()  # does not wait for a client that has got nothing yet
        output._write(b"c")
        await output.uncork()
        output._write(b"d")
        assert [theirs.recv(10) for _ in range(3)] == [b"a", b"bc", b"d"]


async def beat(scope: Any, receive: Any, send: Any) -> None:
    """Sends a message every five seconds, and the first one with the response to the handshake."""
    if scope["type"] != "websocket":
        return
    websocket = scope["extensions"][FAST_EXTENSION]
    await receive()
    websocket.cork()
    await send({"type": "websocket.accept"})
    assert websocket.try_send_text(b"beat")
    await websocket.uncork()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        while True:
            await trio.sleep(5)
            websocket.try_send_text(b"beat")


async def test_ping_is_sent_with_a_message_that_is_due(virtual_clock: MockClock) -> None:
    async with serving(beat) as server, await server.open() as connection:
        await connection.send(UPGRADE)
        assert (await connection.response()).status == 101
        assert await connection.read_exactly(len(BEAT)) == BEAT
        for _ in range(3):  # a client that answers stays connected
            assert await connection.read_exactly(2 * len(BEAT) + len(EMPTY_PING)) == BEAT + BEAT + EMPTY_PING
            await connection.send(PONG)
        unanswered = await connection.read_to_end()
        assert unanswered.startswith(BEAT + BEAT + EMPTY_PING + BEAT)
        assert unanswered.count(EMPTY_PING) == 1


async def test_client_that_does_not_answer_is_disconnected_after_twenty_seconds(virtual_clock: MockClock) -> None:
    async with serving(beat) as server, await server.open() as connection:
        began = trio.current_time()
        await connection.send(UPGRADE)
        assert (await connection.response()).status == 101
        await connection.read_to_end()
        assert 20 <= trio.current_time() - began < 23  # of the virtual clock
