"""What is no plain HTTP/1.x request is hypercorn's, with what was read of it."""

from typing import Any

import h2.config
import h2.connection
import h2.events
import trio
from trio_websocket import open_websocket_url

from tests.kit.raw_http import SHORT, echo, serving


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
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    pairs = [(":method", "GET"), (":path", "/two"), (":authority", "x"), (":scheme", "http")]
    connection.send_headers(1, pairs, end_stream=True)
    body = b""
    async with serving("lane", talk) as server, await server.open() as raw:
        await raw.send(connection.data_to_send())
        with trio.fail_after(5):
            while True:
                events = connection.receive_data(bytes(await raw.stream.receive_some()))
                body += b"".join(
                    event.data for event in events if isinstance(event, h2.events.DataReceived) and event.data
                )
                if any(isinstance(event, h2.events.StreamEnded) for event in events):
                    break
    assert b'"path":"/two"' in body
    assert b'"http_version":"2"' in body


async def test_h2c_is_agreed_on() -> None:
    more = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    async with serving("lane", talk, SHORT) as server, await server.open() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + more)
        answer = await raw.answer()
        assert (answer.status, answer.headers["upgrade"]) == (101, "h2c")
    assert server.over.is_set()  # who never reads keeps nobody


async def test_a_method_that_is_not_on_the_list_is_served() -> None:
    async with serving("lane", talk) as server, await server.open() as raw:
        await raw.send(
            b"BREW /pot HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nteaGET /next HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        first, second = await raw.answer(), await raw.answer()
        assert (first.told["method"], first.told["body"], second.told["path"]) == ("BREW", "tea", "/next")
