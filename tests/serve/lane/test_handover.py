"""What is no plain HTTP/1.x request is hypercorn's, with what was read of it."""

from typing import Any

import h2.config
import h2.connection
import h2.events
import trio
from trio_websocket import open_websocket_url

from tests.kit.raw_http import SHORT, Raw, echo, reply, serving


async def talk(scope: Any, receive: Any, send: Any) -> None:
    """Says back what it hears, on a socket; and what it was asked, elsewhere."""
    if scope["type"] == "http":
        await echo(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"].upper()})


async def test_a_websocket_is_opened() -> None:
    async with (
        serving("lane", talk) as server,
        open_websocket_url(f"ws://127.0.0.1:{server.address[1]}/socket") as socket,
    ):
        for text in ("one", "two"):
            await socket.send_message(text)
            assert await socket.get_message() == text.upper()


async def test_a_websocket_may_follow_a_request() -> None:
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    upgrade = b"GET /s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + key + b"\r\n"
    async with serving("lane", talk) as server, await server.open() as raw:
        await raw.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n" + upgrade)
        assert (await raw.answer()).told["path"] == "/a"
        answer = await raw.answer()
        assert answer.status == 101
        assert answer.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_http_2_is_spoken_by_who_speaks_it() -> None:
    async with serving("lane", talk) as server, await server.open() as raw:
        body = await Two(raw).get("/two")
        assert b'"path":"/two"' in body
        assert b'"http_version":"2"' in body


class Two:
    """A client of HTTP/2."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._connection.initiate_connection()

    async def get(self, path: str) -> bytes:
        pairs = [(":method", "GET"), (":path", path), (":authority", "x"), (":scheme", "http")]
        self._connection.send_headers(self._connection.get_next_available_stream_id(), pairs, end_stream=True)
        await self._raw.send(self._connection.data_to_send())
        body = b""
        with trio.fail_after(5):
            while True:
                for event in self._connection.receive_data(bytes(await self._raw.stream.receive_some())):
                    if isinstance(event, h2.events.DataReceived):
                        body += event.data or b""
                    # Leaving, hypercorn may say goodbye before it has said that this was all.
                    if isinstance(event, h2.events.StreamEnded | h2.events.ConnectionTerminated):
                        return body


async def test_who_was_handed_over_is_answered_while_the_worker_leaves() -> None:
    begun, go = trio.Event(), trio.Event()

    async def work(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await go.wait()
        await reply(send, b"done")

    bodies: list[bytes] = []

    async def ask(raw: Raw) -> None:
        bodies.append(await Two(raw).get("/work"))

    async with serving("lane", work) as server, await server.open() as raw:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, raw)
            await begun.wait()
            await trio.sleep(0.05)
            server.stop.set()
            await trio.sleep(0.05)
            go.set()
        assert bodies == [b"done"]
        await raw.stream.aclose()
        with trio.fail_after(2):
            await server.over.wait()


async def test_http_2_does_not_follow_a_request() -> None:
    async with serving("lane", talk) as server, await server.open() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert (await raw.answer()).status == 200
        assert (await raw.answer()).status == 400


async def test_h2c_is_agreed_on() -> None:
    more = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    async with serving("lane", talk, SHORT) as server, await server.open() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + more)
        answer = await raw.answer()
        assert (answer.status, answer.headers["upgrade"]) == (101, "h2c")
    assert server.over.is_set()  # who never reads keeps nobody
