"""Limits of the work that an unauthenticated client can cause in one go. The work is counted, not timed."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
import wsproto.connection

from sso.serve.http1 import head as heads
from sso.serve.http1.body import MAX_CHUNKS_PER_CALL, MAX_SMALL_CHUNKS, ChunkedBody
from sso.serve.http1.head import MAX_PATH
from sso.serve.http1.rejections import RequestRejected
from sso.serve.http1.websocket_limits import MAX_FRAMES
from sso.serve.server_limits import ServerLimits
from tests.kit.raw_http import read_body, reply, serving

POST = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
TINY = b"1\r\nx\r\n"


def test_tiny_chunks_are_decoded_a_limited_number_at_a_time() -> None:
    body = ChunkedBody(ServerLimits())
    data, rest = body.feed(TINY * 1000 + b"0\r\n\r\n")
    assert len(data) == MAX_CHUNKS_PER_CALL
    while not body.done:
        more, rest = body.feed(rest)
        data += more
    assert (data, rest) == (b"x" * 1000, b"")


@pytest.mark.parametrize(
    "size", [MAX_CHUNKS_PER_CALL - 1, MAX_CHUNKS_PER_CALL, MAX_CHUNKS_PER_CALL + 1, 3 * MAX_CHUNKS_PER_CALL]
)
async def test_body_of_tiny_chunks_arrives_whole(size: int) -> None:
    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, await read_body(receive))

    async with serving(handler) as server:
        response = await server.request(POST + TINY * size + b"0\r\n\r\n")
        assert (response.status, response.body) == (200, b"x" * size)


async def test_body_of_too_many_tiny_chunks_is_rejected() -> None:
    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, await read_body(receive))

    async with serving(handler) as server:
        assert (await server.request(POST + TINY * (MAX_SMALL_CHUNKS + 200) + b"0\r\n\r\n")).status == 400
        usual = b"80\r\n" + b"x" * 128 + b"\r\n"
        assert (await server.request(POST + usual * (MAX_SMALL_CHUNKS + 200) + b"0\r\n\r\n")).status == 200


def test_many_short_trailers_are_rejected() -> None:
    with pytest.raises(RequestRejected, match="too long"):
        ChunkedBody(ServerLimits()).feed(b"0\r\n" + b"a:\r\n" * 200 + b"\r\n")


def test_too_many_headers_are_rejected_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_parse_headers", lambda raw: pytest.fail("parsed"))
    raw = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 100 + b"\r\n"
    with pytest.raises(RequestRejected) as rejection:
        heads.read_head(raw, 100)
    assert rejection.value.status == 431


async def test_path_that_is_too_long_is_rejected() -> None:
    async with serving() as server:
        for length, status in ((MAX_PATH, 200), (MAX_PATH + 1, 414)):
            path = (b"/" + b"%41" * length)[: length - 3].rstrip(b"%4") + b"aaa"
            path += b"a" * (length - len(path))
            assert len(path) == length
            assert (await server.request(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")).status == status


async def test_frames_after_a_flood_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0
    ended = trio.Event()
    events = wsproto.connection.Connection.events

    def counted(connection: wsproto.connection.Connection) -> Iterator[Any]:
        nonlocal parsed
        for event in events(connection):
            parsed += 1
            yield event

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        await receive()
        for _ in range(20):  # everything has arrived by now, and the server had time to read it
            await trio.testing.wait_all_tasks_blocked(0.005)
        await send({"type": "websocket.close", "code": 1008})
        ended.set()

    monkeypatch.setattr(wsproto.connection.Connection, "events", counted)
    async with serving(handler) as server, await server.open() as connection:
        await connection.send(HANDSHAKE)
        assert (await connection.response(head_only=True)).status == 101
        await connection.send(b"\x8a\x80\0\0\0\0" * 5000)  # pongs
        await ended.wait()
        assert b"\x88\x02\x03\xf0" in await connection.read_to_end()
    assert parsed == MAX_FRAMES + 1
