"""Clients that violate the protocol."""

from typing import Any

import trio

from sso.log import current_request_id
from tests.kit.raw_http import RunningServer, reply

KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


UPGRADE = b"GET /s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\n"


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


CLOSE_FRAME = b"\x88\x80\x00\x00\x00\x00"


PING_FRAME = b"\x89\x80\x00\x00\x00\x00"


VIOLATIONS = {
    "request after a handshake": UPGRADE + GET,
    "request before a handshake": GET + UPGRADE + GET,
    "two handshakes": UPGRADE + UPGRADE,
    "frames after the closing one": UPGRADE + CLOSE_FRAME + PING_FRAME * 20,
    "frame with reserved bits": UPGRADE + b"\xf1\x80\x00\x00\x00\x00",
    "frame without a mask": UPGRADE + b"\x81\x02hi",
    "text that is not UTF-8": UPGRADE + b"\x81\x82\x00\x00\x00\x00\xff\xff",
    "fragment without a beginning": UPGRADE + b"\x80\x82\x00\x00\x00\x00hi",
    "control frame that is too long": UPGRADE + b"\x89\xfe\x01\x00\x00\x00\x00\x00" + b"a" * 256,
    "handshake that is malformed": UPGRADE.replace(b"13", b"14") + GET,
    "no request": b"\x16\x03\x01nonsense\r\n\r\n",
    "bad chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "response not awaited": GET * 50,
}


async def talk(scope: Any, receive: Any, send: Any) -> None:
    """Reads the whole request or all frames; a request sets the request id of its task."""
    if scope["type"] == "http":
        current_request_id.set("of-a-request")
        while (await receive()).get("more_body"):
            pass
        await reply(send, b"")
        return
    await receive()
    await trio.lowlevel.checkpoint()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def violate(server: RunningServer, data: bytes) -> None:
    async with await server.open() as connection:
        await connection.send(data)
        await connection.stream.send_eof()
        with trio.fail_after(60):
            while await connection._receive():
                pass
