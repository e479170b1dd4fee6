"""Limits of client messages on a socket: 4 kB per message, 20 messages and 100 frames in 5 seconds."""

import struct

import pytest
import trio

from tests.kit.held import Rows, Socket, new_game
from tests.kit.server import Server

CONTINUATION, TEXT, BINARY, PING, PONG = 0, 1, 2, 9, 10
LARGE = 126


@pytest.fixture(scope="module")
def server(quick_sockets: Server) -> Server:
    return quick_sockets


def frame(kind: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """Returns a frame masked with zeros, which leave the payload unchanged."""
    first = kind | (0x80 if final else 0)
    if len(payload) < LARGE:
        return struct.pack("!BB4x", first, 0x80 | len(payload)) + payload
    return struct.pack("!BBH4x", first, 0x80 | LARGE, len(payload)) + payload


def fragments(kind: int, *parts: bytes, final: bool = True) -> bytes:
    last = len(parts) - 1
    return b"".join(
        frame(CONTINUATION if place else kind, part, final=final and place == last) for place, part in enumerate(parts)
    )


async def send(socket: Socket, data: bytes) -> None:
    """Sends all data at once, so that it arrives within the rate window even on a slow machine."""
    async with socket.connection._stream_lock:
        await socket.stream.send_all(data)


ALLOWED = {
    "20 messages": frame(TEXT, b"x") * 20,
    "20 empty messages": frame(BINARY) * 20,
    "a message of 4096 bytes": frame(TEXT, b"x" * 4096),
    "a message of 4096 bytes in 4 fragments": fragments(TEXT, *[b"x" * 1024] * 4),
    "a message of 4096 bytes in characters of 4 bytes": frame(TEXT, "🎮".encode() * 1024),
    "an unfinished message of 4096 bytes": fragments(BINARY, *[b"x" * 1024] * 4, final=False),
    "100 pings": frame(PING) * 99,  # plus the one that the test sends
    "pings between fragments": frame(TEXT, b"a", final=False) + frame(PING, b"p") * 9 + frame(CONTINUATION, b"b"),
}
TOO_LARGE = {
    "4097 bytes of text": frame(TEXT, b"x" * 4097),
    "4097 bytes": frame(BINARY, b"x" * 4097),
    "1025 characters of 4 bytes": frame(TEXT, "🎮".encode() * 1025),
    "4097 bytes in two fragments": fragments(TEXT, b"x" * 4096, b"x"),
    "4097 bytes in fragments of an unfinished message": fragments(BINARY, *[b"x" * 1024] * 4, b"x", final=False),
    "1025 characters in fragments": fragments(TEXT, *["🎮".encode() * 41] * 25, final=False),
}
FLOODS = {
    "21 messages": frame(TEXT, b"x") * 21,
    "21 empty messages": frame(TEXT) * 21,
    "101 pings": frame(PING) * 101,
    "101 pongs": frame(PONG, b"x") * 101,
    "101 empty fragments": fragments(TEXT, *[b""] * 101, final=False),
    "101 frames of all kinds": (frame(TEXT) + fragments(BINARY, b"", b"x") + frame(PING) + frame(PONG)) * 5
    + frame(PING) * 76,
}


@pytest.mark.parametrize("name", ALLOWED)
async def test_messages_within_the_limits_leave_the_socket_open(server: Server, name: str) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        await send(socket, ALLOWED[name])
        with trio.fail_after(60):
            await socket.connection.ping()  # answered after the messages
        assert socket.connection.closed is None


@pytest.mark.parametrize("name", TOO_LARGE)
async def test_message_over_4_kb_closes_with_1009(server: Server, rows: Rows, name: str) -> None:
    await assert_closes(server, rows, TOO_LARGE[name], 1009, "message too large")


@pytest.mark.parametrize("name", FLOODS)
async def test_too_many_messages_or_frames_close_with_1008(server: Server, rows: Rows, name: str) -> None:
    await assert_closes(server, rows, FLOODS[name], 1008, "too many messages")


async def assert_closes(server: Server, rows: Rows, data: bytes, code: int, error: str) -> None:
    """Asserts the close code, and that a close by the server does not cancel the held poll."""
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.event()
        poll = await game.begin_poll()
        await rows.until_polled(game.gsid)
        await send(socket, data)
        found, last = await socket.closed()
        assert (found, last["event"], last["status"], last["error"]) == (code, "close", "ERROR", error)
        await poll.close()
    assert (await rows.get(game.gsid))["cancels"] == 0
