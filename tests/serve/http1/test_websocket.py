"""WebSockets of both HTTP servers; a failed handshake closes the connection."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock
from trio_websocket import open_websocket_url

from tests.kit.raw_http import SHORT_LIMITS, echo, serving
from tests.kit.websocket_upgrade import UPGRADE, WEBSOCKET_KEY


async def talk(scope: Any, receive: Any, send: Any) -> None:
    """Echoes the messages of a WebSocket in upper case, and other requests as they are."""
    if scope["type"] == "http":
        await echo(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"].upper()})


async def test_websocket_exchanges_messages() -> None:
    async with (
        serving(talk) as server,
        open_websocket_url(f"ws://127.0.0.1:{server.address[1]}/socket") as socket,
    ):
        for text in ("one", "two"):
            await socket.send_message(text)
            assert await socket.get_message() == text.upper()


@pytest.mark.parametrize("header", [b"Sec-WebSocket-Protocol: \xff, a", b"Sec-WebSocket-Extensions: \xff; x"])
async def test_handshake_that_offers_protocols_or_extensions_is_accepted_without_them(header: bytes) -> None:
    async with serving(talk) as server, await server.open() as connection:
        await connection.send(UPGRADE.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n\r\n"))
        response = await connection.response()
        assert response.status == 101
        assert response.headers.keys().isdisjoint({"sec-websocket-protocol", "sec-websocket-extensions"})


async def test_websocket_can_follow_a_request_on_the_same_connection() -> None:
    async with serving(talk) as server, await server.open() as connection:
        await connection.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n" + UPGRADE)
        assert (await connection.response()).json["path"] == "/a"
        response = await connection.response()
        assert response.status == 101
        assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_websocket_is_open_until_the_drain_ends(virtual_clock: MockClock) -> None:
    async with serving(talk, SHORT_LIMITS) as server, await server.open() as connection:
        await connection.send(UPGRADE)
        assert (await connection.response()).status == 101
        server.stop.set()
        assert await connection.is_closed()
        with trio.fail_after(60):
            await server.stopped.wait()


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    """Refuses a WebSocket with a response of its own, or by closing it."""
    await receive()
    if scope["path"] == "/close":
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-length", b"2")]
    await send({"type": "websocket.http.response.start", "status": 403, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b"no"})


HANDSHAKES = {
    "refused by the application": (UPGRADE, 403),
    "closed by the application": (UPGRADE.replace(b"/s ", b"/close "), 403),
    "no key": (UPGRADE.replace(b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b""), 400),
    "short key": (UPGRADE.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"dGhl"), 400),
    "two keys": (UPGRADE.replace(b"\r\nSec-WebSocket-V", b"\r\n" + WEBSOCKET_KEY + b"Sec-WebSocket-V"), 400),
    "no version": (UPGRADE.replace(b"Sec-WebSocket-Version: 13\r\n", b""), 426),
    "version 8": (UPGRADE.replace(b"13", b"8"), 426),
    "HTTP/1.0": (UPGRADE.replace(b"HTTP/1.1", b"HTTP/1.0"), 200),
    "no connection token": (UPGRADE.replace(b"Connection: Upgrade", b"Connection: keep-alive"), 200),
    "listed with another protocol": (UPGRADE.replace(b"websocket\r\n", b"websocket, foo\r\n"), 200),
    "POST": (UPGRADE.replace(b"GET", b"POST"), 200),
    "with a body": (UPGRADE.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\nhi"), 200),
}


@pytest.mark.parametrize("name", HANDSHAKES)
async def test_refused_websocket_handshake_closes_the_connection(name: str) -> None:
    """Otherwise a proxy that considers it a tunnel would let its client send requests in the name of the proxy."""
    handshake, status = HANDSHAKES[name]

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await (refuse if scope["type"] == "websocket" else echo)(scope, receive, send)

    async with serving(handler) as server, await server.open() as connection:
        await connection.send(handshake + b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
        response = await connection.response()
        assert (response.status, response.headers["connection"]) == (status, "close")
        assert await connection.is_closed()


async def test_bytes_after_a_handshake_are_frames() -> None:
    frame = b"\x81\x82\x00\x00\x00\x00hi"
    async with serving(talk) as server, await server.open() as connection:
        await connection.send(UPGRADE + frame)
        assert (await connection.response()).status == 101
        assert await connection.read_exactly(4) == b"\x81\x02HI"
